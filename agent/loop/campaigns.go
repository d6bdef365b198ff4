package loop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/actors/proof"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// whyAgentStops is the reason in a candidate's last line when the agent stops, and the error of later calls.
const whyAgentStops = "the agent stops"

// Programs are the calls that a program of this host makes to the loop, from any goroutine.
type Programs struct{ loop *Loop }

func (l *Loop) Programs() Programs { return Programs{l} }

// do makes the loop run f, and returns f's error, or a *api.ErrorDetail if the loop has ended.
func (p Programs) do(f func(now election.Instant) error) error {
	err := error(&api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops})
	_ = p.loop.call(context.Background(), func(now election.Instant) { err = f(now) })
	return err
}

// Stand adds a program's candidacy, or a companion. Errors are *api.ErrorDetail.
func (p Programs) Stand(q actors.Request) (k *actors.Candidacy, err error) {
	err = p.do(func(now election.Instant) (err error) {
		if p.loop.stopping {
			return &api.ErrorDetail{Code: api.CodeUnavailable, Message: whyAgentStops}
		}
		if k, err = p.loop.Actors.Stand(now, q); err != nil {
			return err
		}
		p.loop.drainQueue()
		if q.Companion != nil {
			p.introduce(q.Companion.Elections, whyConnected)
			p.loop.publish(now)
			return nil
		}
		if _, exists := p.loop.contest(q.Election); !exists {
			p.loop.Actors.End(k.ID())
			p.loop.drainQueue()
			k = nil
			return &api.ErrorDetail{Code: api.CodeBusy, Message: fmt.Sprintf("there are too many elections: %s can't be created", q.Election)}
		}
		return nil
	})
	return k, err
}

// Resume gives a program its candidacy back. Errors are *api.ErrorDetail.
func (p Programs) Resume(q actors.Resumption) (k *actors.Candidacy, err error) {
	err = p.do(func(now election.Instant) (err error) {
		k, err = p.loop.Actors.Resume(now, q)
		p.loop.drainQueue()
		return err
	})
	return k, err
}

// End ends a candidacy. waits is true if its program may still act, and until is that program's
// deadline. After the deadline a proof that the program has ended has no effect.
func (p Programs) End(id string) (until election.Instant, waits bool) {
	_ = p.do(func(election.Instant) error {
		p.loop.Actors.End(id)
		p.loop.drainQueue()
		until, waits = p.loop.Actors.Awaits(id)
		return nil
	})
	return until, waits
}

// Gone records the proof that the program of a candidacy has ended.
func (p Programs) Gone(id string) {
	_ = p.do(func(election.Instant) error { p.loop.Actors.Gone(id); return nil })
}

// Receipt records a program's report that it has stopped. Errors are *api.ErrorDetail.
func (p Programs) Receipt(id string, name election.Name, term election.Term, why election.Reason, authorized func(uid uint32) bool) error {
	return p.do(func(election.Instant) error { return p.loop.Actors.Receipt(id, name, term, why, authorized) })
}

// Acts returns the election in which the program may still act under that term. Errors are *api.ErrorDetail.
func (p Programs) Acts(id string, term election.Term, authorized func(uid uint32) bool) (name election.Name, err error) {
	err = p.do(func(election.Instant) (err error) { name, err = p.loop.Actors.Acts(id, term, authorized); return err })
	return name, err
}

// Report records what a companion reports of itself. Errors are *api.ErrorDetail.
func (p Programs) Report(id string, c api.Companion, authorized func(uid uint32) bool) error {
	return p.do(func(now election.Instant) error {
		if err := p.loop.Actors.Report(now, id, c, authorized); err != nil {
			return err
		}
		p.loop.drainQueue()
		p.loop.publish(now)
		return nil
	})
}

// whyConnected is the reason in the first changes that a companion is sent.
const whyConnected = "doyen act has connected"

// introduce sends a companion the present leader of each of its elections that this host does not lead. Where this
// host leads, the registry sends the companion the term. names are the companion's elections; if they include
// api.EveryElection, introduce sends the leaders of all elections that this agent knows.
func (p Programs) introduce(names []string, why string) {
	picture, every := p.loop.picture.Load(), slices.Contains(names, api.EveryElection)
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
		c, _ := p.loop.contest(name)
		if leader, led := c.LeaderAt(p.loop.Clock()); !led {
			p.loop.Actors.Companions().Change(name, p.loop.nobody(name, 0, why))
		} else if leader != p.loop.Self {
			p.loop.Actors.Companions().Change(name, api.Change{Time: time.Now().UTC(), Type: api.ChangeLeader, Election: string(name), Term: uint64(c.Term), Reason: why,
				Leader: picture.LeaderOf(c), BoottimeNS: int64(p.loop.Clock())})
		}
	}
}

// Campaigns lists the candidates and companions of this host. The list is empty once the loop has ended.
func (p Programs) Campaigns() []api.Campaign {
	all := []api.Campaign{}
	_ = p.do(func(election.Instant) error { all = append(all, p.loop.Actors.List()...); return nil })
	return all
}

// contest returns an election as the newest picture shows it.
func (l *Loop) contest(name election.Name) (elector.ContestStatus, bool) {
	return serve.ContestOf(l.picture.Load().Status, name)
}

// prolong notifies the programs whose leases were renewed since its last call. It skips an election that has
// not changed: both pictures then have the same pointer.
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

// proveAbsent waits for the end of the programs that an earlier life elected and that have not
// resumed yet.
func (l *Loop) proveAbsent() {
	programs, until := l.Actors.Absent()
	if len(programs) == 0 {
		return
	}
	go func() { // asking the kernel about a thousand programs would delay the first heartbeat
		for i, p := range programs {
			if p.Sockets[0] == 0 {
				continue // none of its sockets is on record, so the end of its process would prove nothing
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
	select {
	case <-process.Gone():
	case <-time.After(until.Sub(l.Clock())):
		return
	case <-l.Done:
		return
	}
	if process.Alone() {
		l.Logger.Info("the program that led has exited", "campaign", id)
		_ = l.call(context.Background(), func(election.Instant) { l.Actors.Dead(id) })
	}
}

// Reconfigure passes the settings to the parts that the loop owns, and makes doyen act read its configuration again.
func (l *Loop) Reconfigure(s actors.Settings, expected []election.Name, given election.Settings) error {
	return l.call(context.Background(), func(at election.Instant) {
		l.Actors.Configure(at, s)
		l.Actors.Companions().Reloaded()
		l.queue = append(l.queue, election.Configure{Preempt: s.Preempt, PreemptDelay: s.PreemptDelay})
		l.Expected, l.Given = expected, given
		l.drainQueue()
		l.publish(at)
	})
}
