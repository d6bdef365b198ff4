package loop

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/actors/proof"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// whyAgentStops is the reason in the last line to programs that are candidates.
const whyAgentStops = "the agent stops"

// call has the loop run f, and returns true once f has run; false if the loop has ended.
func (l *Loop) call(f func(now election.Instant)) bool {
	done := make(chan struct{})
	select {
	case l.calls <- func() {
		f(l.Clock())
		close(done)
	}:
		<-done
		return true
	case <-l.Done:
		return false
	}
}

// Stand adds a program's candidacy. Errors are *api.ErrorDetail.
func (l *Loop) Stand(q actors.Request) (k *actors.Candidacy, err error) {
	err = &api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops}
	l.call(func(now election.Instant) {
		if l.stopping {
			return
		}
		if k, err = l.Actors.Stand(now, q); err != nil {
			return
		}
		l.drainQueue()
		if q.Companion != nil {
			l.introduce(q.Companion.Elections, whyConnected)
			l.publish(now)
			return
		}
		if _, exists := l.contest(q.Election); !exists {
			l.Actors.End(k.ID())
			l.drainQueue()
			k, err = nil, &api.ErrorDetail{Code: api.CodeBusy, Message: fmt.Sprintf(
				"there are too many elections: %s can't be created", q.Election)}
		}
	})
	return k, err
}

// Resume gives a program its candidacy back. Errors are *api.ErrorDetail.
func (l *Loop) Resume(q actors.Resumption) (k *actors.Candidacy, err error) {
	err = &api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops}
	l.call(func(now election.Instant) {
		k, err = l.Actors.Resume(now, q)
		l.drainQueue()
	})
	return k, err
}

// End ends a candidacy. If its program may still act, waits is true, and until is its deadline:
// a later proof that the program has ended changes nothing.
func (l *Loop) End(id string) (until election.Instant, waits bool) {
	l.call(func(election.Instant) {
		l.Actors.End(id)
		l.drainQueue()
		until, waits = l.Actors.Awaits(id)
	})
	return until, waits
}

// Gone records the proof that the program of a candidacy has ended.
func (l *Loop) Gone(id string) {
	l.call(func(election.Instant) { l.Actors.Gone(id) })
}

// Receipt records a program's report that it has stopped. Errors are *api.ErrorDetail.
func (l *Loop) Receipt(id string, name election.Name, term election.Term, why election.Reason, authorized func(uid uint32) bool) (err error) {
	err = &api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops}
	l.call(func(election.Instant) { err = l.Actors.Receipt(id, name, term, why, authorized) })
	return err
}

// Report records what a companion reports of itself. Errors are *api.ErrorDetail.
func (l *Loop) Report(id string, c api.Companion, authorized func(uid uint32) bool) (err error) {
	err = &api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops}
	l.call(func(now election.Instant) {
		if err = l.Actors.Report(now, id, c, authorized); err == nil {
			l.drainQueue()
			l.publish(now)
		}
	})
	return err
}

// whyConnected is the reason of the changes with which a companion begins.
const whyConnected = "doyen act has connected"

// introduce sends companions who leads where this host does not; where it leads, they have been
// sent that. It covers those that a companion names, and where it acts in every other one, all that
// this agent knows.
func (l *Loop) introduce(names []string, why string) {
	picture, every := l.picture.Load(), slices.Contains(names, api.EveryElection)
	all := map[election.Name]bool{}
	for _, name := range names {
		all[election.Name(name)] = name != api.EveryElection
	}
	for _, c := range picture.Status.Contests {
		all[c.Election] = all[c.Election] || every
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !all[name] {
			continue
		}
		c, _ := l.contest(name)
		if leader, led := c.LeaderAt(l.Clock()); !led {
			l.Actors.Companions().Change(name, l.nobody(name, 0, why))
		} else if leader != l.Self {
			l.Actors.Companions().Change(name, api.Change{Time: time.Now().UTC(), Type: api.ChangeLeader, Election: string(name), Term: uint64(c.Term), Reason: why,
				Leader: picture.Leader(leader.Peer), BoottimeNS: int64(l.Clock())})
		}
	}
}

// Campaigns lists the programs that are candidates; none once the loop has ended.
func (l *Loop) Campaigns() []api.Campaign {
	all := []api.Campaign{}
	l.call(func(election.Instant) { all = append(all, l.Actors.List()...) })
	return all
}

// contest returns an election as the newest picture shows it.
func (l *Loop) contest(name election.Name) (elector.ContestStatus, bool) {
	contests := l.picture.Load().Status.Contests
	i, ok := slices.BinarySearchFunc(contests, name, func(c *elector.ContestStatus, n election.Name) int {
		return cmp.Compare(c.Election, n)
	})
	if !ok {
		return elector.ContestStatus{}, false
	}
	return *contests[i], true
}

// prolong notifies the programs whose leases were renewed since its last call. If an election
// has not changed, both pictures share one pointer to it.
func (l *Loop) prolong() {
	before := l.prolonged
	l.prolonged = l.picture.Load().Status.Contests
	for i, c := range l.prolonged {
		if i < len(before) && before[i] == c {
			continue
		}
		if l.holds(c) {
			l.Actors.Prolong(c.Election, c.Term, c.ValidUntil)
		}
	}
}

func (l *Loop) holds(c *elector.ContestStatus) bool {
	return c.State == elector.Leading && c.Leader == l.Self
}

// tellCampaigns notifies the program that is to act that this agent leads. A leadership can
// start and end within one step; then no program is notified.
func (l *Loop) tellCampaigns(now election.Instant, a election.Announcement, change api.Change) {
	if a.Leader != l.Self || a.Event != election.Leading && a.Event != election.NewTerm {
		l.Actors.Companions().Change(a.Election, change)
		return
	}
	c, ok := l.contest(a.Election)
	switch {
	case !ok || !l.holds(&c) || c.Term != a.Term:
	case a.Event == election.NewTerm:
		l.Actors.Rise(a.Election, a.Term, c.ValidUntil, &change)
	default:
		l.Actors.Lead(now, a.Election, a.Term, c.ValidUntil, &change)
	}
}

// proveAbsent waits for the end of programs that an earlier life elected and that have not
// resumed yet.
func (l *Loop) proveAbsent() {
	programs, until := l.Actors.Absent()
	if len(programs) == 0 {
		return
	}
	go func() { // asking the kernel about a thousand programs would delay the first heartbeat
		for i, p := range programs {
			if p.Sockets[0] == 0 {
				continue // no socket of it is on record, so its end would prove nothing
			}
			process, err := proof.Recorded(p)
			if err != nil {
				l.Logger.Info("a program that led can't be proven to have ended: if it does not resume, its successor waits for the end of the lease", "campaign", p.Campaign, "err", err)
				continue
			}
			go l.proveEnd(p.Campaign, process, until[i])
		}
	}()
}

func (l *Loop) proveEnd(id string, process *proof.Process, until election.Instant) {
	defer process.Close()
	deadline := time.NewTimer(until.Sub(l.Clock()))
	defer deadline.Stop()
	select {
	case <-process.Gone():
	case <-deadline.C:
		return
	case <-l.Done:
		return
	}
	if process.Alone() {
		l.Logger.Info("the program that led has exited", "campaign", id)
		l.call(func(election.Instant) { l.Actors.Dead(id) })
	}
}

// Reconfigure gives the settings to what the loop owns, and has doyen act read its own.
func (l *Loop) Reconfigure(s actors.Settings, expected []election.Name) error {
	if !l.call(func(at election.Instant) {
		l.Actors.Configure(at, s)
		l.Actors.Companions().Reloaded()
		l.queue = append(l.queue, election.Configure{Preempt: s.Preempt, PreemptDelay: s.PreemptDelay})
		l.Expected = expected
		l.drainQueue()
		l.publish(at)
	}) {
		return errors.New(whyAgentStops)
	}
	return nil
}
