package elector

import (
	"fmt"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/virtual"
)

const leads = 5 * leavingAtOnce // how many elections an agent leads in these tests

// TestAnAgentThatLeavesHandsOverInTurns: while a hands over, never more than a few elections are without a leader,
// and each is for hardly longer than a vote takes.
func TestAnAgentThatLeavesHandsOverInTurns(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]election.Input{"drain": election.Drain{On: true}, "shutdown": election.Shutdown{}} {
		for _, algorithm := range []string{election.Bully, election.Ring} {
			t.Run(name+" "+algorithm, func(t *testing.T) {
				t.Parallel()
				c := leadingCluster(t, algorithm)
				ended, most, longest := map[election.Name]election.Instant{}, 0, time.Duration(0)
				c.Watch = func(a *virtual.Agent, action any) {
					c.did(a, action)
					switch x := action.(type) {
					case election.Withdrawal:
						ended[x.Election] = c.Now
						most = max(most, len(ended))
					case election.Announcement:
						if x.Event == election.Leading {
							longest = max(longest, c.Now.Sub(ended[x.Election]))
							delete(ended, x.Election)
						}
					}
				}
				c.input("a", leave)
				c.run(testTiming.Lease / 2)
				if n := ledBy(c, "a"); n != 0 || len(ended) != 0 || ledBy(c, "b")+ledBy(c, "c") != leads {
					t.Errorf("it still leads %d of %d elections, and nobody leads %d", n, leads, len(ended))
				}
				if most != leavingAtOnce {
					t.Errorf("%d elections were without a leader at once, want %d", most, leavingAtOnce)
				}
				if limit := testTiming.Heartbeat / 4; longest == 0 || longest > limit {
					t.Errorf("an election was without a leader for %v, at most %v", longest, limit)
				}
			})
		}
	}
}

// leadingCluster is three agents that are candidates in the same elections. a leads them all.
func leadingCluster(t *testing.T, algorithm string) *cluster {
	c := newCluster(t, algorithm, "a", "b", "c")
	for _, name := range c.names {
		c.start(name)
		c.input(name, election.Withdraw{Election: election.Default})
		for i := range leads {
			c.input(name, election.Campaign{Election: leadNamed(i), Priority: 100})
		}
	}
	c.run(10 * testTiming.Lease)
	if n := ledBy(c, "a"); n != leads {
		t.Fatalf("it leads %d of %d elections", n, leads)
	}
	return c
}

func leadNamed(i int) election.Name { return election.Name(fmt.Sprintf("e%03d", i)) }

func ledBy(c *cluster, name string) int { return ledNow(c.nodes[name].elector) }

func ledNow(e *Elector) (n int) {
	for _, s := range e.Contests() {
		if s.State == Leading {
			n++
		}
	}
	return n
}

// leadingSolo leads many elections. If heirs is true, b is a candidate in them, but does nothing.
func leadingSolo(t *testing.T, heirs bool) *solo {
	s := newLone(t, election.State{Roster: soloRoster})
	var b []election.Candidacy
	for i := range leads {
		s.campaign(leadNamed(i))
		s.hear("b", grant(s.request(s.sent, "b", leadNamed(i))))
		b = append(b, election.Candidacy{Election: leadNamed(i), Priority: 100})
	}
	if heirs {
		s.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: b})
	}
	if n := ledNow(s.e); n != leads {
		t.Fatalf("it leads %d of %d elections", n, leads)
	}
	return s
}

// led lets time pass while b renews what a leads, and then checks how many elections a leads.
func (s *solo) led(want int, after time.Duration) {
	s.t.Helper()
	for end := s.now.Add(after); s.now < end; {
		s.pass(min(end.Sub(s.now), testTiming.Heartbeat/4))
		for _, h := range sentTo[election.Heartbeat](s.sent, "b") {
			s.hear("b", ack(h))
		}
		s.clear()
	}
	if n := ledNow(s.e); n != want {
		s.t.Errorf("it leads %d elections after %v, want %d", n, after, want)
	}
}

// TestAnAgentThatLeavesDoesNotWaitLongForHeirsThatDoNothing: no turn begins later than
// a vote timeout after the one before, and when the time for turns has passed, all others are handed over at once.
func TestAnAgentThatLeavesDoesNotWaitLongForHeirsThatDoNothing(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{true, false} { // whether the programs stop
		drained, stopped := leadingSolo(t, true), leadingSolo(t, true)
		for s, in := range map[*solo]election.Input{drained: election.Drain{On: true}, stopped: election.Shutdown{}} {
			s.step(in)
			for i := range leads {
				if stops && len(s.withdrawn) > i {
					s.step(election.Stopped{Election: s.withdrawn[i].Election, Term: s.withdrawn[i].Term})
				}
			}
			if next, want := s.e.leaving.nextAt, s.now.Add(voteTimeout); next != want {
				t.Errorf("the next turn begins at %d, want %d", next, want)
			}
			s.led(leads-leavingAtOnce, voteTimeout-1)
			s.led(leads-2*leavingAtOnce, 1)
		}
		drained.led(leads-3*leavingAtOnce, voteTimeout)
		stopped.led(leads-2*leavingAtOnce, maxShutdownTurns-voteTimeout-1)
		stopped.led(0, 1)
	}
}

func TestAnAgentThatLeavesWaitsForNobodyWhereNobodyElseCanLead(t *testing.T) {
	t.Parallel()
	s := leadingSolo(t, false)
	s.step(election.Drain{On: true})
	s.led(0, 0)
}

func TestABarredAgentLeavesAllAtOnce(t *testing.T) {
	t.Parallel()
	s := leadingSolo(t, true)
	s.step(election.Barred{Code: "data_dir_shared"})
	s.led(0, 0)
}

// TestADrainThatEndsLeavesTheRestWhereItIs: the elections whose turn has not come stay with a.
func TestADrainThatEndsLeavesTheRestWhereItIs(t *testing.T) {
	t.Parallel()
	s := leadingSolo(t, true)
	s.step(election.Drain{On: true})
	s.step(election.Drain{On: false})
	s.led(leads-leavingAtOnce, 2*voteTimeout)
	s.step(election.Shutdown{})
	s.step(election.Drain{On: true})
	s.step(election.Drain{On: false}) // a shutdown can't be undone
	s.led(0, maxShutdownTurns)
}

// TestADrainThatIsRepeatedEndsNoLater: the time for turns counts from the first request.
func TestADrainThatIsRepeatedEndsNoLater(t *testing.T) {
	t.Parallel()
	s := leadingSolo(t, true)
	s.step(election.Drain{On: true})
	by := s.now.Add(10 * testTiming.Lease)
	s.led(leads-leavingAtOnce, 1)
	s.step(election.Drain{On: true})
	if s.e.leaving.by != by {
		t.Errorf("the turns end at %d, want %d", s.e.leaving.by, by)
	}
}
