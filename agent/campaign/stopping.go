package campaign

import (
	"fmt"
	"slices"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// wait is a term that was withdrawn and is given back once everybody who acted
// under it has stopped, or by the elector itself when the deadline has passed.
type wait struct {
	election election.Name
	term     election.Term
	stopBy   election.Instant
	hook     bool       // the hook's run has not ended yet
	by       *Candidacy // has not stopped yet; nil: nobody acts, or it has
	over     bool       // the elector has the receipt
}

// Withdraw takes the end of a leadership, and notifies the program that acted. With
// hook, the end of the hook's run is awaited too.
func (r *Registry) Withdraw(w election.Withdrawal, hook bool) {
	wt := &wait{election: w.Election, term: w.Term, stopBy: w.StopBy, hook: hook}
	r.waits = append(r.waits, wt)
	if c := r.races[w.Election]; c != nil && c.term != 0 && c.term <= w.Term {
		r.revoke(c, w, wt)
	}
	r.conclude(wt)
}

// revoke notifies the program that acts.
func (r *Registry) revoke(c *race, w election.Withdrawal, wt *wait) {
	k, why := c.acting, w.Reason
	if c.why != "" {
		why = c.why
	}
	c.term, c.acting, c.until, c.why = 0, nil, 0, ""
	r.led--
	delete(r.rivals, c)
	if k != nil && !k.host {
		r.stats.revoked.Add(1)
		k.say(api.CampaignEvent{Type: api.CampaignRevoked, Term: uint64(w.Term),
			StopByBoottimeNS: int64(w.StopBy), Reason: string(why)})
		k.newest = max(k.newest, w.Term) // it may hear of a term that rose and ended in one step by this alone
		wt.by, k.wait = k, wt
		if k.leaves {
			r.remove(k)
		}
		if k.hasStopped {
			r.stopped(k, byReceipt)
		}
	}
	r.settle(c)
	r.tidy(c)
}

// HookDone takes the end of the hook's run for a withdrawal. The elector gets it
// even if it is too late to matter, which it knows by itself.
func (r *Registry) HookDone(name election.Name, term election.Term) {
	for _, w := range r.waits {
		if w.election == name && w.term == term {
			w.hook = false
			r.conclude(w)
			return
		}
	}
	r.inputs = append(r.inputs, election.Stopped{Election: name, Term: term})
}

// conclude gives the elector the receipt if nothing is awaited any more.
func (r *Registry) conclude(w *wait) {
	if w.hook || w.by != nil || w.over {
		return
	}
	w.over = true
	r.inputs = append(r.inputs, election.Stopped{Election: w.election, Term: w.term})
	r.waits = slices.DeleteFunc(r.waits, func(o *wait) bool { return o == w })
}

// expire gives up waiting where the deadline has passed: the elector gives the
// term back by itself then.
func (r *Registry) expire(now election.Instant) {
	r.waits = slices.DeleteFunc(r.waits, func(w *wait) bool {
		if now < w.stopBy {
			return false
		}
		if k := w.by; k != nil {
			r.stats.released[byDeadline].Add(1)
			k.wait = nil
			k.unanswered++
			r.forget(k)
		}
		return true
	})
}

// Awaits returns until when the end of the candidacy's process would still be
// worth something; false if it is not.
func (r *Registry) Awaits(id string) (election.Instant, bool) {
	k := r.byID[id]
	if k == nil || k.wait == nil {
		return 0, false
	}
	return k.wait.stopBy, true
}

// Gone takes the proof that the program of a candidacy which has ended is gone.
func (r *Registry) Gone(id string) {
	if k := r.byID[id]; k != nil && k.ended && k.wait != nil {
		r.stopped(k, byProof)
	}
}

// stopped takes that the program has stopped acting under the term it waits
// for.
func (r *Registry) stopped(k *Candidacy, how release) {
	w := k.wait
	k.wait, w.by = nil, nil
	r.stats.released[how].Add(1)
	r.conclude(w)
	r.forget(k)
}

// Receipt takes a program's report that it has stopped acting under a term; 0: the
// oldest one without a receipt. A program that reports without being asked gives up
// the term and the candidacy. authorized reports whether the caller may do this for
// a program of that user.
//
// A receipt without a term never ends a term that the program may not know of: it
// counts for a term whose deadline passed without a receipt, if there is one, before
// it counts for the present one. A receipt that nobody asked for may be a copy of
// one for an earlier leadership: then the program is notified of the end of the
// term, but does not count as stopped.
func (r *Registry) Receipt(id string, term election.Term, authorized func(uid uint32) bool) error {
	k := r.byID[id]
	if k == nil {
		return &api.ErrorDetail{Code: api.CodeNotFound, Message: "no campaign on this host has this ID; it may have ended"}
	}
	if !authorized(k.request.UID) {
		return &api.ErrorDetail{Code: api.CodeForbidden, Message: fmt.Sprintf(
			"this campaign belongs to user %d: only that user, root and the agent's user may send its receipt", k.request.UID)}
	}
	if term > k.newest {
		return &api.ErrorDetail{Code: api.CodeBadRequest, Message: fmt.Sprintf(
			"this campaign was never elected in term %d; its newest term is %d", term, k.newest)}
	}
	c := r.races[k.election]
	switch {
	case term == 0 && k.unanswered > 0:
		k.unanswered--
	case k.wait != nil && (term == 0 || term == k.wait.term):
		r.stopped(k, byReceipt)
	case c != nil && c.acting == k && c.why == "" && (term == 0 || term == c.term):
		k.hasStopped = term != 0 || !k.before
		k.leaves = !k.ended
		c.candidates = slices.DeleteFunc(c.candidates, func(o *Candidacy) bool { return o == k })
		r.dismiss(c, ReasonStopped)
	}
	return nil // else it is late, or nothing was led: nothing waits for it
}
