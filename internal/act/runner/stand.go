package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/jobs"
)

// stand tries to become a candidate, after a wait that grows with each failure.
func (r *runner) stand() {
	if r.candidacy != nil {
		r.candidacy.Close()
		r.candidacy = nil
	}
	r.asking, r.resuming, r.back = true, false, false
	request := r.Request
	// If runner and guard are killed together, the command's children may live on without the campaign's
	// connection. So its end proves nothing. If only one of the two is killed, the other one gives the receipt.
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
		case r.calls <- func() { r.take(candidacy, err) }:
		case <-r.ctx.Done():
			if err == nil {
				candidacy.Close()
			}
		}
	}()
}

// take handles the outcome of an attempt to become a candidate.
func (r *runner) take(candidacy *client.Candidacy, err error) {
	r.asking = false
	if err != nil {
		if !r.met && !r.worthWaiting(err) {
			r.ending, r.fault = true, fmt.Errorf("campaign in %s: %w", r.Election, err)
			return
		}
		r.complain(err)
		return
	}
	if r.unfit != "" { // the check has failed since the attempt started
		candidacy.Close()
		return
	}
	r.say("candidate in %s", r.Election)
	r.candidacy, r.over, r.met, r.retry, r.late, r.complaint = candidacy, false, true, 0, 0, ""
	go r.listen(candidacy)
	if r.Try {
		go r.askWho(candidacy)
		return
	}
	go r.askWhy(candidacy)
}

// complain reports why this host can't be a candidate, once for each reason: an agent may be away for a day.
func (r *runner) complain(err error) {
	if text := err.Error(); text != r.complaint {
		r.complaint = text
		r.say("can't be a candidate in %s: %s; trying again", r.Election, text)
	}
}

// worthWaiting reports whether, because of --wait, Run waits after this error at the start.
func (r *runner) worthWaiting(err error) bool {
	refused, ok := errors.AsType[*client.APIError](err)
	return r.Wait && (!ok || refused.Status >= 500)
}

// goesOn reports whether the candidacy continues after a receipt. err is the result of sending it. The agent
// must have accepted the receipt before the lease ended. A later one could end the next leadership, whose line
// was not read yet.
func (r *runner) goesOn(err error, now int64) bool {
	return err == nil && r.revoked && now < r.until
}

// giveReceipt reports to the agent that the command has ended.
func (r *runner) giveReceipt() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), receiptTimeout)
	defer cancel()
	err := r.candidacy.StoppedBecause(ctx, r.why)
	r.over = r.over || !r.goesOn(err, alarm.Now())
	r.leading, r.owed, r.revoked, r.why = false, false, false, ""
	if t := r.task; t != nil {
		r.advise(jobs.Lost{})
		*t = task{Job: t.Job, writes: t.writes + 1} // with a new number: answers to writes of the former leadership are ignored
	}
	if r.Try && !r.over {
		go r.askWho(r.candidacy)
	}
}
