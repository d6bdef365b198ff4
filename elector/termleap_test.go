package elector

import (
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// leap is how far a term may be above the highest known one.
const leap = election.Term(1) << 32

// withObserver is the voters a, b and c with a leader, and the observer d.
func withObserver(t *testing.T) *cluster {
	c := newCluster(t, election.Bully, "a", "b", "c", "d")
	c.nodes["d"].observe = true
	for _, n := range c.names {
		c.start(n)
	}
	c.run(10 * time.Second)
	return c
}

// TestNoMessagesOfAnObserverEndAnElection: one or two messages to each follower did. The next
// leader asked for a term that no voter granted until all had been restarted.
func TestNoMessagesOfAnObserverEndAnElection(t *testing.T) {
	ghost := func(c *cluster) election.Holder { return election.Holder{Peer: "d", Lineage: c.nodes["d"].Lineage} }
	for name, lies := range map[string]func(*cluster, *Elector, election.Term) []election.Message{
		"a claim that is followed, and a release": func(c *cluster, e *Elector, known election.Term) []election.Message {
			return []election.Message{
				election.Heartbeat{Lineage: 1, Send: 1, Version: e.roster.Version, Echo: c.Now,
					Claims: []election.Claim{{Election: election.Default, Term: known + 1, Remaining: testTiming.Lease}}},
				election.Release{Election: election.Default, Term: known + leap, Holder: ghost(c)},
			}
		},
		"a report with a roster of its own": func(c *cluster, e *Elector, known election.Term) []election.Message {
			forged := *e.roster
			forged.Voters = voters("d")
			return []election.Message{election.Report{Voter: true, Roster: &forged, Lineage: 1, Records: farRecord(ghost(c), known+leap)}}
		},
		"the truth": func(*cluster, *Elector, election.Term) []election.Message { return nil },
	} {
		c := withObserver(t)
		for _, n := range []string{"b", "c"} {
			e := c.nodes[n].elector
			for _, m := range lies(c, e, e.contests.get(election.Default).Highest()) {
				c.input(n, election.Received{From: "d", Message: m})
			}
		}
		c.run(3 * time.Second)
		for _, n := range []string{"b", "c"} {
			if known := c.nodes[n].elector.contests.get(election.Default).Highest(); known >= leap {
				t.Errorf("%s: %s believes in term %d", name, n, known)
			}
		}
		c.kill("d")
		c.kill("a")
		c.run(10 * time.Second)
		if leads := c.leaders(); leads != "b@2" {
			t.Errorf("%s: %q leads ten seconds after the leader died, want b in term 2", name, leads)
		}
	}
}

// TestARefusalOfAnObserverEndsNoChangeOfTheVoters: one refusal made the driver ask for a term of
// the roster election that no voter granted.
func TestARefusalOfAnObserverEndsNoChangeOfTheVoters(t *testing.T) {
	s, p := changing(t, 0)
	s.connect("z", election.Report{Roster: soloRoster, Stamp: 5})
	refuse := election.RosterRefuse{Driver: p.Driver, Version: p.Roster.Version, Granted: leap}
	s.hear("z", refuse)
	if known := s.e.contests.get(election.RosterElection).Highest(); known >= leap {
		t.Errorf("believes an observer in term %d", known)
	}
	s.hear("d", refuse) // d becomes a voter, so it may already have granted the term
	if known := s.e.contests.get(election.RosterElection).Highest(); known != leap {
		t.Errorf("a voter tells of term %d, and it believes in %d", leap, known)
	}
}

// TestALeaderIsNamedAlthoughAnObserverGaveBackAHigherTerm: the release suggested that all lower
// terms had ended.
func TestALeaderIsNamedAlthoughAnObserverGaveBackAHigherTerm(t *testing.T) {
	s := newSolo(t, nil)
	s.connect("d", election.Report{Roster: soloRoster, Stamp: 5})
	s.hear("d", claimOf(1000))
	s.hear("d", election.Release{Election: election.Default, Term: 1000, Holder: election.Holder{Peer: "d", Lineage: 1}})
	s.hear("d", claimOf(1000))
	if leads := s.status(election.Default).Leader.Peer; leads == "d" {
		t.Error("names the observer again by a late heartbeat")
	}
	s.hear("b", claimOf(1))
	if leads := s.status(election.Default).Leader.Peer; leads != "b" {
		t.Errorf("names %q, want b", leads)
	}
}

// TestALateClaimIsNotBelievedAfterAReleaseThatNoVoterConfirms: d's release may be true: then b led
// before d. The program was already notified of d's term, and terms never fall.
func TestALateClaimIsNotBelievedAfterAReleaseThatNoVoterConfirms(t *testing.T) {
	s := newSolo(t, nil)
	s.connect("d", election.Report{Roster: soloRoster, Stamp: 5})
	late := claimOf(1)
	late.Echo = s.now
	s.pass(20 * time.Millisecond)
	s.hear("d", claimOf(2))
	s.hear("d", election.Release{Election: election.Default, Term: 2, Holder: election.Holder{Peer: "d", Lineage: 1}})
	s.hear("b", late)
	if leads := s.status(election.Default).Leader.Peer; leads != "" {
		t.Fatalf("names %q by a claim that was sent before the release", leads)
	}
	later := claimOf(1)
	later.Echo = s.now
	s.hear("b", later)
	if leads := s.status(election.Default).Leader.Peer; leads != "b" {
		t.Fatalf("names %q, want b, which claims it after the release", leads)
	}
}

// refusedFar returns an agent a that asks c for a very high term: the voter b has reported a term
// far above all that a and c know.
func refusedFar(t *testing.T) *solo {
	s := newLone(t, trioState())
	s.hear("b", election.Report{Voter: true, Records: farRecord(election.Holder{Peer: "d", Lineage: 1}, leap)})
	s.campaign(election.Default)
	return s
}

// tooFar is the refusal of a voter that knows no term above the given one.
func tooFar(r election.VoteRequest, known election.Term) election.VoteRefusal {
	refusal := refusalOf(r, known)
	refusal.Reason = election.RefusedLeap
	return refusal
}

// TestATermThatTheVotersCannotFollowIsGivenUp: one voter had granted such a term, and because of
// that the others could never elect a leader again.
func TestATermThatTheVotersCannotFollowIsGivenUp(t *testing.T) {
	s := refusedFar(t)
	var asked []election.Term
	for range 40 {
		s.pass(testTiming.Heartbeat / 2)
		for _, r := range sentTo[election.VoteRequest](s.take(), "c") {
			asked = append(asked, r.Term)
			switch {
			case r.Term > leap:
				s.hear("c", tooFar(r, 0))
			default:
				s.hear("b", refusalOf(r, leap))
				s.hear("c", grant(r))
			}
		}
		if s.leads(election.Default) {
			if term := s.status(election.Default).Term; term > 10 {
				t.Errorf("leads in term %d, asked for %d", term, asked)
			}
			return
		}
	}
	t.Fatalf("never leads; asked for %d", asked)
}

// TestANextLifeStaysWithTheTermsThatTheVotersKnow: a life went back from high terms. The next life
// knows that by its record, and asks for no such terms. No life asks again for a term of a former life.
func TestANextLifeStaysWithTheTermsThatTheVotersKnow(t *testing.T) {
	s := refusedFar(t)
	seen := map[election.Term]bool{}
	var asked []election.Term
	answer := func(s *solo, grants bool) (leads bool) {
		mine := map[election.Term]bool{}
		for range 30 {
			s.pass(testTiming.Heartbeat / 2)
			for _, r := range sentTo[election.VoteRequest](s.take(), "c") {
				if seen[r.Term] && !mine[r.Term] {
					t.Fatalf("asks for %d as a former life did, after %d", r.Term, asked)
				}
				seen[r.Term], mine[r.Term] = true, true
				asked = append(asked, r.Term)
				switch {
				case r.Term > leap:
					s.hear("c", tooFar(r, 0))
				case grants:
					s.hear("c", grant(r))
				default:
					s.hear("b", refusalOf(r, leap)) // leads a up again, farther than its own voter follows
					s.hear("b", election.Report{Voter: true, Roster: s.disk.Roster, Records: farRecord(election.Holder{Peer: "d", Lineage: 1}, 2*leap)})
					s.hear("c", election.VoteRefusal{Election: r.Election, Term: r.Term, Holder: r.Holder, Reason: election.RefusedPromised})
				}
			}
			if s.leads(election.Default) {
				return true
			}
		}
		return false
	}
	for range 3 {
		if answer(s, false) || asked[len(asked)-1] < leap && !slices.ContainsFunc(asked, func(t election.Term) bool { return t > leap }) {
			t.Fatalf("asked for %d, want high and low terms, and none granted", asked)
		}
		s = s.dies(nil).meets()
		s.campaign(election.Default)
	}
	if !answer(s, true) || asked[len(asked)-1] > 1000 {
		t.Fatalf("a later life does not lead in a low term; asked for %d", asked)
	}
}

// TestH1NoTermIsAskedForTwiceAfterGoingBack: a goes back to the terms that the voters know. It
// skips all terms, low and high, that it has already asked for.
func TestH1NoTermIsAskedForTwiceAfterGoingBack(t *testing.T) {
	s := refusedFar(t)
	var asked []election.Term
	seen := map[election.Term]bool{}
	near, far := 0, 0
	for range 400 {
		s.pass(testTiming.Heartbeat / 2)
		for _, r := range sentTo[election.VoteRequest](s.take(), "c") {
			if len(asked) == 0 || asked[len(asked)-1] != r.Term {
				if seen[r.Term] {
					t.Fatalf("asks for %d again, after %d", r.Term, asked)
				}
				asked, seen[r.Term] = append(asked, r.Term), true
				if r.Term > leap {
					far++
				} else {
					near++
				}
			}
			switch {
			case r.Term > leap:
				s.hear("c", tooFar(r, 0))
			default:
				s.hear("b", refusalOf(r, leap)) // leads a up again
				s.hear("c", election.VoteRefusal{Election: r.Election, Term: r.Term, Holder: r.Holder, Reason: election.RefusedPromised})
			}
		}
	}
	if near < 3 || far < 3 {
		t.Fatalf("asked for %d: it does not go back and up again", asked)
	}
}

// TestR6AnOvertakingGoesBackToWhatTheVotersKnow: otherwise a leader whose term a change of the
// voters has ended would lose its lease.
func TestR6AnOvertakingGoesBackToWhatTheVotersKnow(t *testing.T) {
	s := newSolo(t, nil).leader()
	for _, far := range []election.Term{leap, 2 * leap} {
		s.hear("c", election.Report{Voter: true, Roster: soloRoster, Records: farRecord(election.Holder{Peer: "d", Lineage: 1}, far)})
	}
	next := *soloRoster
	next.Version, next.Floor = election.Version{Driver: 3}, 9
	s.tells("b", &next)
	for range 8 {
		s.pass(testTiming.Heartbeat / 2)
		for _, r := range sentTo[election.VoteRequest](s.take(), "b") {
			if r.Term > leap {
				s.hear("b", tooFar(r, 0))
			} else {
				s.hear("b", grant(r))
			}
		}
	}
	if st := s.status(election.Default); !s.leads(election.Default) || st.Term <= 9 || st.Term > 20 {
		t.Errorf("%+v, want it to lead in a term just above the floor", st)
	}
}

// TestAnObserversAcceptanceSetsNoFloor: one such acceptance used up all terms for good, on disk.
func TestAnObserversAcceptanceSetsNoFloor(t *testing.T) {
	s, p := changing(t, 0)
	s.connect("z", election.Report{Roster: soloRoster, Stamp: 5})
	m := s.mark(p, "b", "d")
	s.hear("z", election.RosterAccept{Driver: m.Driver, Version: m.Roster.Version, Highest: 100_000})
	s.accept("b", m, 1)
	s.accept("d", m, 1)
	stable := false
	for _, x := range sentTo[election.RosterPropose](s.keep(3*testTiming.Lease, "b", "d"), "b") {
		if stable = stable || !x.Roster.Joint(); !x.Roster.Joint() && x.Roster.Floor > 1000 {
			t.Fatalf("a stable roster with floor %d is proposed", x.Roster.Floor)
		}
	}
	if !stable {
		t.Error("the change does not go on")
	}
}

// TestAVoterWhoseTermIsTooFarIsNamed: the change waits for this voter, and operators must know.
func TestAVoterWhoseTermIsTooFarIsNamed(t *testing.T) {
	s, p := changing(t, 0)
	m := s.mark(p, "b", "d")
	s.accept("d", m, 1<<50)
	for _, w := range s.e.Status(s.now).Warnings {
		if w.Code == "voter_term_leap" && w.Agent == "d" {
			return
		}
	}
	t.Errorf("warnings %+v", s.e.Status(s.now).Warnings)
}

// TestAnElectionThatWasLedApartHasAWayBack: an attacker with the cluster key raises terms of an idle
// election at some voters, farther than the others follow. Then no candidate can ask all voters for one
// term. The floor of the next change of the voters brings them together again.
func TestAnElectionThatWasLedApartHasAWayBack(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c", "d")
	c.nodes["d"].observe, c.nodes["d"].prio = true, 0
	roster := rosterOf("a", "b", "c")
	for i, n := range c.names[:3] {
		grant := election.Grant{Term: election.Term(i) * 2 * leap, Holder: election.Holder{Peer: "x", Lineage: 1}, Lease: testTiming.Lease, Released: true}
		c.nodes[n].Disk.Roster, c.nodes[n].Disk.Grants = roster, map[election.Name]election.Grant{election.Default: grant}
	}
	c.nodes["d"].Disk.Roster = roster
	for _, n := range c.names {
		c.start(n)
	}
	c.run(20 * testTiming.Lease)
	if got := c.leaders(); got != "" {
		t.Fatalf("%s leads: the voters are not apart", got)
	}
	c.input("a", election.ChangeRoster{Add: nodesOf("d"), Request: 1})
	c.run(5 * testTiming.Lease)
	if got := c.replyTo("a", 1); got != "done" {
		t.Fatalf("the change: %q", got)
	}
	c.run(3 * testTiming.Lease)
	if got := c.leaders(); got == "" {
		t.Fatalf("nobody leads; %s", voterNames(c.roster("a")))
	}
}
