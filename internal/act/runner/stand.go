package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// attempt is the outcome of one try to become a candidate.
type attempt struct {
	candidacy *client.Candidacy
	err       error
}

// stand tries to become a candidate, after a wait that grows from failure to failure.
func (r *runner) stand() {
	if r.candidacy != nil {
		r.candidacy.Close()
		r.candidacy = nil
	}
	r.asking, r.resuming, r.back = true, false, false
	request := r.Request
	// If runner and guard are killed together, the command's children may live on, and they
	// don't hold the campaign's connection: its end proves nothing. If only one of the two
	// is killed, the other gives the receipt.
	request.Proof = new(false)
	wait := max(r.retry/2+rand.N(r.retry/2+1), alarm.Until(r.notBefore))
	r.retry = min(max(firstRetry, 2*r.retry), lastRetry)
	go func() {
		if !r.waitFor(wait) {
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, standTimeout)
		defer cancel()
		candidacy, err := r.Client.Stand(ctx, r.Election, request)
		select {
		case r.attempts <- attempt{candidacy, err}:
		case <-r.ctx.Done():
			if err == nil {
				candidacy.Close()
			}
		}
	}()
}

// take handles the outcome of an attempt to become a candidate.
func (r *runner) take(s attempt) {
	r.asking = false
	if s.err != nil {
		if !r.met && !r.worthWaiting(s.err) {
			r.ending, r.fault = true, fmt.Errorf("campaign in %s: %w", r.Election, s.err)
			return
		}
		r.complain(s.err)
		return
	}
	if r.unfit != "" { // since the attempt began
		s.candidacy.Close()
		return
	}
	r.say("candidate in %s", r.Election)
	r.candidacy, r.over, r.met, r.retry, r.late, r.complaint = s.candidacy, false, true, 0, 0, ""
	go r.listen(s.candidacy)
	go r.askWhy(s.candidacy)
}

// complain reports why this host can't be a candidate, once for each reason: if an agent is
// away for a day, not every attempt is worth a line.
func (r *runner) complain(err error) {
	if text := err.Error(); text != r.complaint {
		r.complaint = text
		r.say("can't be a candidate in %s: %s; trying again", r.Election, text)
	}
}

// worthWaiting reports whether --wait covers this error at the start.
func (r *runner) worthWaiting(err error) bool {
	if refused, ok := errors.AsType[*client.APIError](err); ok {
		return r.Wait && refused.Status >= 500
	}
	return r.Wait
}
