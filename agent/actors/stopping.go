package actors

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// wait is a term from which this host steps down. The term is released once the program and the
// companion have stopped. When the deadline has passed, the elector releases the term by itself.
type wait struct {
	election election.Name
	term     election.Term
	stopBy   election.Instant
	why      election.Reason
	change   *api.Change // the end of the term, as watches show it
	beside   bool        // the companion has not stopped yet
	by       *Candidacy  // the candidacy whose program has not stopped yet; nil: no program has to stop any more
	idle     bool        // the elector has released the term already, and needs no receipt
	over     bool        // the elector has the receipt
}

// Withdraw notifies the program and the companion of the end of a leadership, and returns. The registry
// then awaits their receipts. change is the end, as watches show it.
func (r *Registry) Withdraw(w election.Withdrawal, change *api.Change) {
	wt := &wait{election: w.Election, term: w.Term, stopBy: w.StopBy, why: w.Reason, change: change}
	r.waits = append(r.waits, wt)
	c := r.races[w.Election]
	if c != nil && c.why != "" {
		wt.why, wt.idle = c.why, c.idle == w.Term
	}
	if c != nil && c.deed.term != 0 {
		c.deed.wait, wt.beside = wt, true
		if c.deed.by != nil {
			c.revokeCompanion()
		}
	}
	if c != nil && c.term != 0 && c.term <= w.Term {
		r.revoke(c, wt)
	}
	r.conclude(wt)
}

// revoked returns the line that reports the end of the leadership.
func (w *wait) revoked() api.CampaignEvent {
	return api.CampaignEvent{Type: api.CampaignRevoked, Election: string(w.election), Term: uint64(w.term),
		StopByBoottimeNS: int64(w.stopBy), Reason: string(w.why)}
}

// revoke notifies the program of the end of the leadership under which it acts.
func (r *Registry) revoke(c *race, wt *wait) {
	k := c.acting
	c.term, c.acting, c.until, c.lease, c.why, c.given, c.idle, c.change = 0, nil, 0, 0, "", "", 0, nil
	r.led--
	delete(r.rivals, c)
	if k != nil && !k.host {
		r.Counters.Revoked.Add(1)
		k.say(wt.revoked())
		k.newest = max(k.newest, wt.term) // a term that rose and ended in one step is new to the program
		wt.by, k.wait = k, wt
		if k.leaves {
			r.remove(k)
		}
		if k.hasStopped {
			r.stopped(k, &r.Counters.ByReceipt)
		}
	}
	r.offerBest(c)
	r.tidy(c)
}

// conclude gives the elector the receipt once the program and the companion have stopped.
func (r *Registry) conclude(w *wait) {
	if w.beside || w.by != nil || w.over {
		return
	}
	if w.over = true; !w.idle {
		r.inputs = append(r.inputs, election.Stopped{Election: w.election, Term: w.term})
	}
	r.waits = slices.DeleteFunc(r.waits, func(o *wait) bool { return o == w })
}

// expire ends the waits whose deadline has passed: the elector then releases the term itself.
func (r *Registry) expire(now election.Instant) {
	r.waits = slices.DeleteFunc(r.waits, func(w *wait) bool {
		if now < w.stopBy {
			return false
		}
		if k := w.by; k != nil {
			r.Counters.ByDeadline.Add(1)
			r.done(k)
			k.wait, k.absent = nil, false
			k.unanswered++
			r.forget(k)
		}
		if c := r.races[w.election]; c != nil && c.deed.wait == w {
			w.over = true // the elector releases the term itself
			r.endDeed(c, &r.Counters.ByDeadline)
		}
		return true
	})
}

// Awaits returns the deadline by which the candidacy's program has to stop; false: it does not have to stop.
func (r *Registry) Awaits(id string) (election.Instant, bool) {
	k := r.byID[id]
	if k == nil || k.wait == nil {
		return 0, false
	}
	return k.wait.stopBy, true
}

// Gone records the proof that a program's process has ended. The proof counts only if the candidacy has ended.
func (r *Registry) Gone(id string) {
	if k := r.byID[id]; k != nil && k.ended && k.wait != nil {
		r.stopped(k, &r.Counters.ByProof)
	}
}

// stopped records that the program has stopped acting under the term that waited for its receipt.
func (r *Registry) stopped(k *Candidacy, how *atomic.Uint64) {
	w := k.wait
	k.wait, w.by = nil, nil
	k.absent = false
	r.done(k)
	how.Add(1)
	r.conclude(w)
	r.forget(k)
}

// owned returns why the caller may not act for the candidacy's user; nil: it may.
func owned(k *Candidacy, authorized func(uid uint32) bool) error {
	if k == nil {
		return &api.ErrorDetail{Code: api.CodeNotFound, Message: "no campaign on this host has this ID; it may have ended"}
	}
	if !authorized(k.request.UID) {
		return &api.ErrorDetail{Code: api.CodeForbidden, Message: fmt.Sprintf(
			"this campaign belongs to user %d: only that user, root and the agent's user may send its receipt or write its word", k.request.UID)}
	}
	return nil
}

// Acts returns the election in which the candidacy's program may still act under that term, even if the program has
// been notified to stop. The error is a *api.ErrorDetail.
func (r *Registry) Acts(id string, term election.Term, authorized func(uid uint32) bool) (election.Name, error) {
	k := r.byID[id]
	if err := owned(k, authorized); err != nil {
		return "", err
	}
	c := r.races[k.election]
	if acts := c != nil && c.acting == k && c.term == term && !k.hasStopped; !acts && (k.wait == nil || k.wait.term != term) {
		return "", &api.ErrorDetail{Code: api.CodeNotLeader, Message: fmt.Sprintf("this campaign does not lead %s in term %d", k.election, term)}
	}
	return k.election, nil
}

// Receipt handles a program's report that it has stopped acting under a term; term 0 means the oldest term
// without a receipt. A companion names the election. A program that was not asked for the receipt gives up its
// leadership and its candidacy; why is the reason, if it gives one. authorized reports whether the caller
// may do this for a program of that user.
//
// A receipt without a term never ends a term that the program may not know of. If the deadline of an earlier term
// passed without a receipt, this receipt counts for that term. If nobody asked for the receipt and the program has
// led before, the receipt may be for the earlier leadership. So the program is notified of the end of its present
// term, and does not count as stopped yet.
func (r *Registry) Receipt(id string, name election.Name, term election.Term, why election.Reason, authorized func(uid uint32) bool) error {
	k := r.byID[id]
	if err := owned(k, authorized); err != nil {
		return err
	}
	if k.companion != nil {
		r.companionStopped(k, name, term, why)
		return nil
	}
	if term > k.newest {
		return &api.ErrorDetail{Code: api.CodeBadRequest, Message: fmt.Sprintf(
			"this campaign was never elected in term %d; its newest term is %d", term, k.newest)}
	}
	c := r.races[k.election]
	// An absent program knows no later term than the one on record.
	newest := k.absent && term == k.program.Told
	switch {
	case term == 0 && k.unanswered > 0:
		k.unanswered--
	case k.wait != nil && (term == 0 || term == k.wait.term || newest):
		r.stopped(k, &r.Counters.ByReceipt)
	case c != nil && c.acting == k && c.why == "" && (term == 0 || term == c.term || newest):
		k.hasStopped = term != 0 || !k.before
		k.leaves, k.absent = !k.ended, false
		if k.hasStopped {
			r.done(k)
		}
		c.candidates = slices.DeleteFunc(c.candidates, func(o *Candidacy) bool { return o == k })
		c.given = why
		r.dismiss(c, cmp.Or(why, ReasonStopped))
	}
	return nil // a late receipt, or one from a program that does not lead: no term waits for it
}

// Given returns why the program gives up its leadership; empty: it has not given a reason.
func (r *Registry) Given(name election.Name) election.Reason {
	if c := r.races[name]; c != nil {
		return c.given
	}
	return ""
}
