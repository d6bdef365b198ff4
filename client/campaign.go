package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// The wait between two attempts to become a candidate: the first, and the longest.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Campaigns returns the programs of this host that are candidates, the oldest
// first: GET /v1/campaigns.
func (c *Client) Campaigns(ctx context.Context) ([]api.Campaign, error) {
	answer, err := call[api.Campaigns](ctx, c, http.MethodGet, "/v1/campaigns", nil)
	return answer.Campaigns, err
}

// Campaign makes this program a candidate in the election and returns when the program has been elected.
// While the agent can't be reached, is busy or stops, Campaign tries again with longer and longer waits.
// A refusal that will not change (an invalid name, no permission) is returned as an *APIError. When ctx
// ends, Campaign withdraws and returns an error that includes the last obstacle.
//
// The leadership's context is derived from ctx. The caller must Close the leadership once everything that
// it did as the leader has ended:
//
//	l, err := c.Campaign(ctx, "payments")
//	if err != nil {
//		return err
//	}
//	defer l.Close()
//	return pay(l.Context(), l.Token)
func (c *Client) Campaign(ctx context.Context, election string) (*Leadership, error) {
	return c.CampaignAs(ctx, election, api.CampaignRequest{})
}

// CampaignAs is Campaign with a request, which can have a priority or a text about the program.
func (c *Client) CampaignAs(ctx context.Context, election string, request api.CampaignRequest) (*Leadership, error) {
	var l *Leadership
	err := c.untilDone(ctx, election, request, func(s *Candidacy) (done bool, err error) {
		if l, err = s.elected(ctx); err != nil {
			s.Close()
		}
		return err == nil, err
	})
	return l, err
}

// untilDone makes the program a candidate again and again, until use returns done. If use returns
// without done, its error is why the candidacy ended.
func (c *Client) untilDone(ctx context.Context, election string, request api.CampaignRequest, use func(*Candidacy) (done bool, err error)) error {
	retry := pause{first: firstRetry, most: lastRetry}
	for {
		s, err := c.Stand(ctx, election, request)
		if err == nil {
			retry.reset() // the program was a candidate, so a later failure starts with short waits again
			var done bool
			if done, err = use(s); done {
				return err
			}
		}
		if ctx.Err() == nil && !passing(err) {
			return fmt.Errorf("campaign in %s: %w", election, err)
		}
		if ctx.Err() == nil && c.Retrying != nil {
			c.Retrying(err)
		}
		if retry.wait(ctx) {
			continue
		}
		if last, ok := errors.AsType[*UnreachableError](err); ok {
			return fmt.Errorf("campaign in %s: %w; the agent could not be reached: %w", election, context.Cause(ctx), last)
		}
		return fmt.Errorf("campaign in %s: %w", election, context.Cause(ctx))
	}
}

// Run calls act whenever this program leads the election, and never twice at once. It makes the
// program a candidate, waits until it is elected, calls act, gives the receipt when act has
// returned, and starts again.
//
// The context that act gets ends with the leadership, as Leadership.Context does; token is the
// fencing token. What happens next depends on when act returns:
//
//   - While this program still leads: the work is done. Run gives up the lead and returns
//     act's error, or nil.
//   - After the context ended: act stopped because it had to. Run ignores act's error and
//     becomes a candidate again. But if ctx has ended, Run returns ctx's cause.
//
// Run never returns while act is running, and gives no receipt before act has returned. A successor waits
// for the receipt or for the end of the lease, whichever comes first. If act panics, no receipt is given.
func (c *Client) Run(ctx context.Context, election string, act func(ctx context.Context, token uint64) error) error {
	return c.RunAs(ctx, election, api.CampaignRequest{}, act)
}

// RunAs is Run with a request, which can have a priority or a text about the program.
func (c *Client) RunAs(ctx context.Context, election string, request api.CampaignRequest, act func(ctx context.Context, token uint64) error) error {
	return c.untilDone(ctx, election, request, func(s *Candidacy) (bool, error) { return s.run(ctx, act) })
}

// run calls act each time the agent elects the program. If done is true, Run returns err. Else the
// candidacy has ended, and err is the reason.
func (s *Candidacy) run(ctx context.Context, act func(context.Context, uint64) error) (done bool, err error) {
	defer s.Close()
	for {
		l, err := s.elected(ctx)
		if err != nil {
			return false, err
		}
		acted := act(l.Context(), l.Token())
		lost := l.ctx.Err() != nil
		l.over(errResigned.Error(), nil)
		l.awaitEnd()
		receipt := s.receipt()
		switch {
		case ctx.Err() != nil:
			return true, fmt.Errorf("run in %s: %w", s.election, context.Cause(ctx))
		case !lost:
			return true, acted
		case receipt != nil || !l.revoked || alarm.Now() >= l.until.Load():
			// Invariant: a candidacy goes on only if the agent accepted the receipt before the lease
			// ended. A later receipt could end the next leadership, whose elected line has not been read
			// yet.
			return false, &endedError{context.Cause(l.ctx)}
		}
	}
}

// endedError is why a candidacy can't go on; a new candidacy can start.
type endedError struct{ err error }

func (e *endedError) Error() string { return e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }

// receipt reports to the agent, if it can be reached, that nothing done as the leader is still under way.
func (s *Candidacy) receipt() error {
	ctx, cancel := context.WithTimeout(context.Background(), receiptTimeout)
	defer cancel()
	return s.Stopped(ctx)
}

// elected waits until the program is elected, and starts the leadership.
func (s *Candidacy) elected(ctx context.Context) (*Leadership, error) {
	var late uint64 // the newest term whose elected line was read after its lease had ended
	for {
		event, err := s.Next(ctx)
		if err != nil {
			return nil, err
		}
		begins := event.Type == api.CampaignElected || event.Type == api.CampaignRenewed && event.Term == late
		switch {
		case begins && alarm.Now() < event.ValidUntilBoottimeNS:
			return lead(ctx, s, event)
		case begins:
			late = event.Term
		case event.Type == api.CampaignRevoked && late > 0:
			late = 0
			if err := s.receipt(); err != nil || alarm.Now() >= event.StopByBoottimeNS {
				return nil, &endedError{errors.New("this program read too late that it was elected")}
			}
		}
	}
}

// passing reports whether another attempt may succeed.
func passing(err error) bool {
	if _, ended := errors.AsType[*endedError](err); ended {
		return true
	}
	if refused, ok := errors.AsType[*APIError](err); ok {
		return refused.Status >= 500
	}
	_, unreachable := errors.AsType[*UnreachableError](err)
	return unreachable
}

// pause is the wait between two attempts: a random time between half a bound and the bound. The bound doubles
// from first up to most. This keeps programs that lost the same agent from all coming back at once.
type pause struct{ first, most, last time.Duration }

func (p *pause) reset() { p.last = 0 }

// wait waits, and returns false if ctx ended first.
func (p *pause) wait(ctx context.Context) bool {
	p.last = min(max(p.first, 2*p.last), p.most)
	select {
	case <-time.After(p.last/2 + rand.N(p.last/2)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
