package elector

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
	"github.com/doyen-election/doyen/transport/inbox"
)

// crowded is a few electors in one virtual time that each have one processor. A step takes time,
// and messages that arrive meanwhile wait in the inbox of real agents. Everything takes
// longer by the factor in the field slow.
type crowded struct {
	virtual.Timeline[election.Instant, happening]
	t      *testing.T
	slow   int
	agents map[election.PeerID]*crowdedAgent
	names  []election.PeerID
}

type crowdedAgent struct {
	id      election.PeerID
	elector *Elector
	waiting inbox.Inbox
	local   []election.Input // inputs that do not come from peers
	wakeAt  election.Instant
	busy    bool
	lost    int // leaderships that were lost without being handed over
}

// happening is a message that arrives or an input of the agent's own. If it is neither, it is the
// end of a step.
type happening struct {
	to    *crowdedAgent
	from  election.PeerID
	what  election.Message
	input election.Input
}

const (
	// aStep is how long a step takes. Each leadership that the message claims adds aClaim. Both are
	// five times as long as on a real machine, for a fifth of the elections.
	aStep  = time.Millisecond
	aClaim = 5 * time.Microsecond
	aWrite = 5 * time.Millisecond
)

// newCrowded starts agents that are all candidates in n elections.
func newCrowded(t *testing.T, n int, level uint64) *crowded {
	c := &crowded{t: t, slow: 1, agents: map[election.PeerID]*crowdedAgent{}, names: []election.PeerID{"a", "b", "c"}}
	c.Now = at(60_000)
	var v election.View
	for _, id := range c.names {
		v.Members = append(v.Members, election.Member{Peer: id, Lineage: 1, Name: string(id), JoinedAt: int64(id[0])})
	}
	for i, id := range c.names {
		e, err := New(election.Config{Self: election.Holder{Peer: id, Lineage: 1}, Name: string(id), JoinedAt: int64(id[0]), Quorum: true,
			Algorithm: election.Bully, Timing: testTiming, Drift: election.DefaultDrift}, election.State{Peer: id, Roster: rosterOf("a", "b", "c")}, nil, c.Now,
			rand.New(rand.NewPCG(1, uint64(i))))
		if err != nil {
			t.Fatal(err)
		}
		a := &crowdedAgent{id: id, elector: e, wakeAt: c.Now}
		a.local = append(a.local, election.ViewChanged{View: v})
		for _, other := range c.names {
			if other != id {
				a.local = append(a.local, election.PeerConnected{Peer: other, Lineage: 1, Level: level})
			}
		}
		for i := range n {
			a.local = append(a.local, election.Campaign{Election: election.Name(fmt.Sprintf("job-%03d", i)), Priority: 100})
		}
		c.agents[id] = a
	}
	return c
}

func (c *crowded) later(d time.Duration, h happening) { c.Push(c.Now.Add(d), h) }

// run lets that much time pass, and stops early once the condition holds.
func (c *crowded) run(d time.Duration, until func() bool) time.Duration {
	began := c.Now
	for end := c.Now.Add(d); c.Now < end; {
		if until != nil && until() {
			break
		}
		for _, id := range c.names {
			c.serve(c.agents[id])
		}
		next := end
		for _, a := range c.agents {
			if !a.busy {
				next = min(next, a.wakeAt)
			}
		}
		for h, _, ok := c.Next(next); ok; h, _, ok = c.Next(c.Now) {
			c.happen(h)
		}
	}
	return c.Now.Sub(began)
}

func (c *crowded) happen(h happening) {
	switch {
	case h.what != nil:
		h.to.waiting.Put(h.from, h.what) // if the inbox refuses it, it is lost, as on a real agent
	case h.input != nil:
		h.to.local = append(h.to.local, h.input)
	default:
		h.to.busy = false
	}
}

// serve makes an idle agent take its next step: a Tick if one is due, else an input of its own,
// else a message.
func (c *crowded) serve(a *crowdedAgent) {
	if a.busy {
		return
	}
	var in election.Input
	took := aStep
	switch {
	case a.wakeAt <= c.Now:
		in = election.Tick{}
	case len(a.local) > 0:
		in, a.local = a.local[0], a.local[1:]
	default:
		item, ok := a.waiting.Take()
		if !ok {
			return
		}
		in = election.Received{From: item.Peer, Message: item.Message}
		if h, ok := item.Message.(election.Heartbeat); ok {
			took += time.Duration(len(h.Claims)) * aClaim
		}
	}
	out := a.elector.Step(c.Now, in)
	took *= time.Duration(c.slow)
	a.busy, a.wakeAt = true, out.WakeAt
	c.later(took, happening{to: a})
	for _, w := range out.Withdraw {
		if w.Reason == election.ReasonLeaseExpired {
			a.lost++
		}
		c.later(took, happening{to: a, input: election.Stopped{Election: w.Election, Term: w.Term}})
	}
	if out.Persist != nil {
		c.later(took+aWrite*time.Duration(c.slow), happening{to: a, input: election.Persisted{Write: out.Persist.Write}})
	}
	for _, m := range out.Send {
		c.later(took+hop, happening{to: c.agents[m.To], from: a.id, what: m.Message})
	}
}

// led counts the elections that some agent considers itself to lead.
func (c *crowded) led() (n int) {
	for _, a := range c.agents {
		for _, s := range a.elector.contests.rows {
			if s.Role() == contest.Leader && s.Name() != election.RosterElection && s.LeaseEnd(c.Now) > c.Now {
				n++
			}
		}
	}
	return n
}

func (c *crowded) lost() (n int) {
	for _, a := range c.agents {
		n += a.lost
	}
	return n
}

// mustSettle demands that all elections are led within that time, and that none is then lost for a
// while.
func (c *crowded) mustSettle(what string, n int, within time.Duration) {
	c.t.Helper()
	took := c.run(within, func() bool { return c.led() == n })
	if c.led() != n {
		c.t.Fatalf("%s: %d of %d are led after %s; %d leads were lost", what, c.led(), n, within, c.lost())
	}
	before := c.lost()
	c.run(10*time.Second, nil)
	if lost := c.lost() - before; lost > 0 || c.led() != n {
		c.t.Fatalf("%s: led after %s, but %d leads were lost in the 10 s after that, and %d of %d are led", what, took, lost, c.led(), n)
	}
	c.t.Logf("%s: led after %s", what, took)
}

// All agents stop until every lease has ended, and go on more slowly. The work that has piled up
// must not keep them from finishing it. Once they have their speed back, no effect may remain
// (Bronson et al. 2021, "Metastable Failures in Distributed Systems").
func TestElectionsThatWereAllLostAreLedAgainOnASlowMachine(t *testing.T) {
	const n = 200
	for _, with := range []struct {
		slow  int
		level uint64
	}{{2, 0}, {2, election.Level}, {4, 0}, {4, election.Level}} {
		t.Run(fmt.Sprintf("%d, level %d", with.slow, with.level), func(t *testing.T) {
			c, slow := newCrowded(t, n, with.level), with.slow
			c.mustSettle("a cold start", n, 20*time.Second)
			c.slow = 2000 // a step of 2 s
			c.run(2500*time.Millisecond, nil)
			c.slow = slow
			c.run(5*time.Second, nil)
			if c.lost() < n/2 {
				t.Fatalf("only %d leads were lost: nothing was pushed over", c.lost())
			}
			c.mustSettle(fmt.Sprintf("%d times as slow", slow), n, 45*time.Second)
			c.slow = 1
			c.mustSettle("with all its time again", n, 5*time.Second)
		})
	}
}

func TestAColdStartOnASlowMachineSettles(t *testing.T) {
	const n, slow = 200, 4
	c := newCrowded(t, n, election.Level)
	c.slow = slow
	c.mustSettle(fmt.Sprintf("%d times as slow", slow), n, 45*time.Second)
}
