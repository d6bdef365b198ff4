package actors

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// Past is what an earlier life of this agent left on record about one election. Term is 0 if the
// elector does not go on leading it.
type Past struct {
	election.Authority
	Program, Companion record.Program
}

// Before returns what an earlier life left on record, for the registry to continue from. The
// roster's election is not included, since no life goes on leading it (K8). If the earlier life had
// the other setting of --quorum, the elector does not go on leading, and the term is 0.
func Before(past *record.Past, quorum bool) []Past {
	if past == nil {
		return nil
	}
	var all []Past
	for _, row := range past.Rows {
		if row.Ending.Reason == "" && (row.Until == election.Never) == quorum {
			row.Term = 0
		}
		if row.Election != election.RosterElection {
			acts := past.Actors[row.Election]
			all = append(all, Past{Authority: row, Program: acts.Program, Companion: acts.Companion})
		}
	}
	return all
}

// Resumption is a program's request to resume, over another connection, the candidacy for which an
// earlier life elected it.
type Resumption struct {
	ID      string
	Term    election.Term // the newest term that the program was sent
	Meta    string
	UID     uint32
	Own     bool           // the user is root or the agent's own user
	Program record.Program // the program as the kernel identifies it now
	// Held returns those of the sockets that a process still has open.
	Held func(sockets []uint64) []uint64
	// May returns why the program may not be a candidate in the election; nil: it may.
	May func(election.Name) error
	// Ceiling returns the highest priority that the program may now have in the election; nil: any.
	Ceiling func(election.Name) *int
}

// restore takes one election over from an earlier life. If the leadership was ending, the elector announces
// the end in its first step. If nobody can act under the leadership any more, the host steps down.
func (r *Registry) restore(p Past) {
	told := p.Program.Campaign != "" && p.Program.Told > p.Program.Stopped
	// Without a quorum a program stops acting when its connection breaks.
	acts := told && p.Term > 0 && p.Until != election.Never
	if told && !acts {
		p.Program.Stopped = p.Program.Told
		r.record(&Candidacy{election: p.Election, program: p.Program})
	}
	if p.Term == 0 {
		return // programs that did not act ask by themselves to be candidates again
	}
	c := r.race(p.Election)
	c.deed.program = p.Companion
	if p.Companion.Told > p.Companion.Stopped && p.Until != election.Never {
		c.deed.term, c.deed.until = p.Companion.Told, p.Until
		r.beside.unattended[c] = struct{}{}
	}
	r.led++
	c.term, c.until, c.lease, c.why = p.Term, p.Until, p.Until, p.Ending.Reason
	c.asked, c.priority = p.Priority > 0, p.Priority
	if acts {
		c.acting = r.expect(p)
	}
	switch {
	case c.why != "" && len(c.candidates) == 0:
	case c.why != "", acts: // without a Campaign, the elector would give the candidacy up (K4d)
		r.inputs = append(r.inputs, election.Campaign{Election: c.name, Priority: c.priority})
	case (p.Program.Campaign == "" || p.Program.Told < p.Term) && len(c.candidates) > 0 && c.candidates[0].priority > 0:
		c.acting = c.candidates[0] // the host itself: no program was sent this term
		r.inputs = append(r.inputs, election.Campaign{Election: c.name, Priority: c.priority})
		r.reprioritize(c) // the host may have another priority now
	default:
		r.dismiss(c, election.ReasonWithdrawn)
	}
}

// expect makes the candidacy of a program that may still act and may resume.
func (r *Registry) expect(p Past) *Candidacy {
	r.order++
	k := newCandidacy(p.Program.Campaign, Request{Election: p.Election, UID: p.Program.UID, PID: p.Program.PID, Program: p.Program}, r.order)
	k.priority, k.stated = p.Program.Priority, true // the record does not show whether the program stated it or had the agent's
	k.ended, k.over, k.absent, k.resumeBy = true, true, true, p.Until
	k.before, k.newest = true, max(p.Program.Told, p.Term)
	r.byID[k.id] = k
	r.absent = append(r.absent, k)
	return k
}

// Absent returns the programs that may still act and have not resumed, and until when each of them
// may act.
func (r *Registry) Absent() (programs []record.Program, until []election.Instant) {
	for _, k := range r.absent {
		if k.absent {
			programs, until = append(programs, k.program), append(until, k.resumeBy)
		}
	}
	return programs, until
}

// Resume gives an absent program its candidacy back. The error is a *api.ErrorDetail.
func (r *Registry) Resume(now election.Instant, q Resumption) (*Candidacy, error) {
	k := r.byID[q.ID]
	if refused := q.refuse(now, k, r.closed); refused != nil {
		return nil, refused
	}
	k.absent, k.ended, k.over = false, false, false
	k.request.Meta, k.request.Own = q.Meta, q.Own
	if q.Ceiling != nil { // the rules may have changed since the earlier life
		k.request.MaxPriority = q.Ceiling(k.election)
		r.prioritize(k)
	}
	k.addSockets(q)
	c := r.enlist(k)
	switch {
	case k.wait != nil:
		r.record(k)
		k.say(k.wait.revoked())
	case c.acting == k && c.why == "":
		k.newest, k.program.Told = c.term, c.term
		r.record(k)
		r.sayUntil(k, api.CampaignRenewed, c.term, c.until, nil)
		r.reprioritize(c)
	}
	r.offerBest(c)
	r.dropRival(c)
	return k, nil
}

// refuse returns why a program can't resume, nil if it can.
func (q Resumption) refuse(now election.Instant, k *Candidacy, closed bool) *api.ErrorDetail {
	no := func(code, format string, args ...any) *api.ErrorDetail {
		return &api.ErrorDetail{Code: code, Message: fmt.Sprintf(format, args...) +
			": stop acting no later than the last deadline, and start a new campaign"}
	}
	switch {
	case closed:
		return no(api.CodeUnavailable, "the agent stops")
	case k == nil:
		return no(api.CodeNotFound, "no campaign on this host has this ID; it has ended, or the agent began without the record of the former process run")
	case q.UID != k.request.UID:
		return no(api.CodeForbidden, "this campaign belongs to user %d, and only a program of that user can resume it", k.request.UID)
	case k.program.Started == 0 || q.Program.Started == 0:
		return no(api.CodeForbidden, "the system does not tell whether this is the process that was elected")
	case q.Program.PID != k.program.PID || q.Program.Started != k.program.Started || q.Program.Space != k.program.Space:
		return no(api.CodeForbidden, "process %d was elected in this campaign, and only it can resume it", k.program.PID)
	case !k.ended:
		return no(api.CodeNotResumable, "this campaign is connected already: nothing has to be resumed")
	case q.Term > k.program.Told || q.Term == 0:
		return no(api.CodeNotResumable, "this campaign was never elected in term %d", q.Term)
	case q.Term <= k.program.Stopped:
		return no(api.CodeNotResumable, "term %d of this campaign has a receipt, or its deadline has passed", q.Term)
	case !k.absent:
		return no(api.CodeNotResumable, "this campaign has ended")
	case now >= k.resumeBy:
		return no(api.CodeNotResumable, "the deadline of this campaign has passed")
	}
	if err := q.May(k.election); err != nil {
		return no(api.CodeForbidden, "%v", err)
	}
	return nil
}

// addSockets records the program's new connection, and those of its earlier ones that are still open.
func (k *Candidacy) addSockets(q Resumption) {
	if _, provable := k.Sockets(); !provable {
		return
	}
	sockets := q.Held(slices.DeleteFunc(slices.Clone(k.program.Sockets[:]), func(inode uint64) bool { return inode == 0 }))
	k.earlier = sockets
	sockets = append(slices.Clone(sockets), q.Program.Sockets[0])
	k.program.Sockets = [record.MaxSockets]uint64{}
	// If a socket is not known or does not fit, the end of this program can't be proven.
	k.program.More = copy(k.program.Sockets[:], sockets) < len(sockets) || q.Program.Sockets[0] == 0
}

// Sockets returns the program's connections with earlier lives of the agent that a process may
// still have open, and whether the program's end can be proven. The goroutine that resumed the
// candidacy may call it too.
func (k *Candidacy) Sockets() (earlier []uint64, provable bool) {
	return k.earlier, k.program.Sockets[0] != 0 && !k.program.More
}

// Dead records the proof that an absent program has ended. If the program has resumed, the proof is
// ignored, since another process may have its new connection open.
func (r *Registry) Dead(id string) {
	if k := r.byID[id]; k != nil && k.absent {
		r.giveUp(k, &r.Counters.ByProof)
	}
}

// lapse gives up the absent programs whose last deadline has passed.
func (r *Registry) lapse(now election.Instant) {
	r.absent = slices.DeleteFunc(r.absent, func(k *Candidacy) bool {
		if k.absent && now >= k.resumeBy {
			r.giveUp(k, &r.Counters.ByDeadline)
		}
		return !k.absent
	})
}

// giveUp ends the leadership of an absent program that certainly no longer acts.
func (r *Registry) giveUp(k *Candidacy, how *atomic.Uint64) {
	if k.wait != nil {
		r.stopped(k, how)
		return
	}
	k.absent = false
	r.done(k)
	c := r.race(k.election)
	if c.acting == k {
		how.Add(1)
		c.acting = nil
		r.dropRival(c)
		if c.why == "" {
			r.dismiss(c, ReasonStopped)
		}
	}
	r.forget(k)
	r.tidy(c)
}
