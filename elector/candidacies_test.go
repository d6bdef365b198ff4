package elector

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// jobs are candidacies with equal priority.
func jobs(names ...election.Name) []election.Candidacy {
	var list []election.Candidacy
	for _, n := range names {
		list = append(list, election.Candidacy{Election: n, Priority: 100})
	}
	return list
}

// rest lets time pass in which b and c answer, but do nothing else.
func (s *solo) rest(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now < end; {
		s.pass(testTiming.Heartbeat)
		s.hear("b", election.Report{})
		s.hear("c", election.Report{})
	}
}

func TestCandidaciesAreSentUntilTheyAreKnown(t *testing.T) {
	o := newLone(t, trioState())
	o.connect("b", election.Report{Voter: true})
	o.take()
	o.campaign("pay")
	told := sentTo[election.Candidacies](o.take(), "b")
	if len(told) != 1 || !slices.Equal(told[0].Candidacies, jobs("pay")) {
		t.Fatalf("told %+v", told)
	}
	o.campaign("cron")
	if again := sentTo[election.Candidacies](o.take(), "b"); len(again) != 0 {
		t.Fatalf("told %+v before the last was acknowledged", again)
	}
	o.pass(testTiming.Heartbeat)
	told = sentTo[election.Candidacies](o.take(), "b")
	if len(told) != 1 || !slices.Equal(told[0].Candidacies, jobs("cron", "pay")) {
		t.Fatalf("a heartbeat later: told %+v", told)
	}
	o.hear("b", election.CandidaciesAck{Lineage: soloSelf.Lineage, Serial: told[0].Serial, By: 1, Run: 9}) // of b's former life
	o.rest(testTiming.Heartbeat)
	if told = sentTo[election.Candidacies](o.take(), "b"); len(told) == 0 {
		t.Fatal("what b's former life knew counts as known")
	}
	o.hear("b", election.CandidaciesAck{Lineage: soloSelf.Lineage, Serial: told[0].Serial, By: 1})
	o.pass(3 * testTiming.Heartbeat)
	if again := sentTo[election.Candidacies](o.take(), "b"); len(again) != 0 {
		t.Fatalf("told %+v although it knows", again)
	}
	o.step(election.Withdraw{Election: "cron"})
	told = sentTo[election.Candidacies](o.take(), "b")
	if len(told) != 1 || !slices.Equal(told[0].Candidacies, jobs("pay")) {
		t.Fatalf("after a withdrawal: told %+v", told)
	}
}

// When a connection ends, its peer may have lost what it knew. An ack from before may come after the reconnect.
func TestAnAckFromBeforeAConnectionCountsForNothing(t *testing.T) {
	o := newLone(t, trioState())
	o.campaign("pay")
	o.connect("b", election.Report{Voter: true})
	told := sentTo[election.Candidacies](o.take(), "b")
	o.step(election.PeerLost{Peer: "b"})
	o.connect("b", election.Report{Voter: true})
	o.take()
	o.hear("b", election.CandidaciesAck{Lineage: soloSelf.Lineage, Serial: told[0].Serial, By: 1})
	o.pass(testTiming.Heartbeat)
	told = sentTo[election.Candidacies](o.take(), "b")
	if len(told) == 0 {
		t.Fatal("what b knew before it forgot counts as known")
	}
	o.hear("b", election.CandidaciesAck{Lineage: soloSelf.Lineage, Serial: told[0].Serial, By: 1})
	o.pass(3 * testTiming.Heartbeat)
	if again := sentTo[election.Candidacies](o.take(), "b"); len(again) != 0 {
		t.Errorf("told %+v although it knows", again)
	}
}

func TestAPeersOwnWordCountsBeforeGossips(t *testing.T) {
	o := newLone(t, trioState())
	o.connect("b", election.Report{Voter: true})
	o.campaign("pay")
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 2, Candidacies: jobs("pay")})
	if got := o.status("pay").Candidates; !slices.Equal(got, []election.PeerID{"a", "b"}) {
		t.Fatalf("candidates %v", got)
	}
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 1})
	if got := o.status("pay").Candidates; !slices.Contains(got, "b") {
		t.Error("an older word undid a newer one")
	}
	o.hear("b", election.Candidacies{Lineage: 9, Serial: 3})
	if got := o.status("pay").Candidates; !slices.Contains(got, "b") {
		t.Error("the word of another boot counted")
	}
	o.take()
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 3})
	if got := o.status("pay").Candidates; slices.Contains(got, "b") {
		t.Errorf("candidates %v after b withdrew", got)
	}
	if acks := sentTo[election.CandidaciesAck](o.take(), "b"); len(acks) != 1 || acks[0].Serial != 3 {
		t.Errorf("acknowledged %+v", acks)
	}
}

// TestALeadersWithdrawalGoesToTheBestCandidateLeft: that may be another candidate of the same host.
func TestALeadersWithdrawalGoesToTheBestCandidateLeft(t *testing.T) {
	for _, test := range []struct {
		remaining int
		target    election.PeerID
	}{{0, "b"}, {50, "b"}, {100, ""}} { // equal priorities are ordered by seniority, and a is the oldest
		o := newLone(t, trioState())
		o.elect("pay")
		o.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: jobs("pay")})
		o.take()
		o.step(election.Withdraw{Election: "pay", Remaining: test.remaining})
		o.step(election.Stopped{Election: "pay", Term: o.withdrawn[0].Term})
		releases := sentTo[election.Release](o.take(), "b")
		if len(releases) != 1 || releases[0].Target != test.target {
			t.Errorf("remaining %d: releases %+v, want for %q", test.remaining, releases, test.target)
		}
	}
}

// TestAnElectionIsGoneAfterItsLastCandidateAndItsTermIsNot.
func TestAnElectionIsGoneAfterItsLastCandidateAndItsTermIsNot(t *testing.T) {
	o := newLone(t, trioState())
	o.elect("pay")
	term := o.status("pay").Term
	o.step(election.Withdraw{Election: "pay"})
	o.step(election.Stopped{Election: "pay", Term: term})
	if slices.ContainsFunc(o.e.Contests(), func(c *ContestStatus) bool { return c.Election == "pay" }) {
		t.Error("it is still listed")
	}
	o.rest(5 * testTiming.Lease)
	if o.e.contests.get("pay") != nil {
		t.Error("it is still held")
	}
	o.take()
	o.campaign("pay")
	if r := o.request(o.take(), "b", "pay"); r.Term <= term {
		t.Errorf("asks for term %d again after %d", r.Term, term)
	}
}

func TestElectionsWithoutCandidatesMakeRoomForOthers(t *testing.T) {
	o := newSolo(t, func(c *election.Config, s *election.State) {
		c.MaxElections = 8
		*s = trioState()
		s.Peer = "a"
	})
	var last election.Term
	for i := range 40 {
		name := election.Name("job-" + time.Duration(i).String())
		o.elect(name)
		if term := o.status(name).Term; i > 16 && term <= last {
			t.Fatalf("%s is led in term %d, and %d was over", name, term, last)
		}
		term := o.status(name).Term
		o.step(election.Withdraw{Election: name})
		o.step(election.Stopped{Election: name, Term: term})
		o.rest(5 * testTiming.Lease)
		o.clear()
		last = o.e.ledger.State().Forgotten
		if n := o.e.names(); n > 8 {
			t.Fatalf("%d elections are held", n)
		}
	}
	if last == 0 {
		t.Error("nothing was ever forgotten")
	}
}

// TestH1ATermAskedForIsNotAskedForAgainAfterItsElectionWasDropped: this also holds for an agent
// that is not a voter, and so has nothing about the election on disk.
func TestH1ATermAskedForIsNotAskedForAgainAfterItsElectionWasDropped(t *testing.T) {
	o := newLone(t, election.State{Roster: rosterOf("b", "c")})
	o.hear("b", election.Report{Voter: true})
	o.hear("c", election.Report{Voter: true})
	o.campaign("pay")
	first := o.request(o.take(), "b", "pay")
	o.step(election.Withdraw{Election: "pay"})
	o.rest(5 * testTiming.Lease)
	if o.e.contests.get("pay") != nil {
		t.Fatal("the election is still held")
	}
	o.take()
	o.campaign("pay")
	if again := o.request(o.take(), "b", "pay"); again.Term <= first.Term {
		t.Errorf("asks for term %d after it asked for %d", again.Term, first.Term)
	}
}

// TestAFloodOfCandidaciesIsTakenInTurn: all programs of a host become candidates at once. The agent
// asks for votes for some of them, and then for the next.
func TestAFloodOfCandidaciesIsTakenInTurn(t *testing.T) {
	const flood = 3 * firstWindow
	o := newLone(t, trioState())
	o.hear("b", election.Report{Voter: true})
	o.hear("c", election.Report{Voter: true})
	for i := range flood {
		o.campaign(election.Name("job-" + time.Duration(i).String()))
	}
	led := func() (n int) {
		for _, c := range o.e.Contests() {
			if c.State == Leading {
				n++
			}
		}
		return n
	}
	for turns := 0; led() < flood; turns++ {
		asked := map[election.Name]election.VoteRequest{}
		for _, r := range sentTo[election.VoteRequest](o.take(), "b") {
			asked[r.Election] = r
		}
		if len(asked) > firstWindow<<turns {
			t.Fatalf("turn %d: it asks for the votes of %d elections at once", turns, len(asked))
		}
		if turns > 20 {
			t.Fatalf("after %d turns it leads %d of %d", turns, led(), flood)
		}
		for _, name := range slices.Sorted(maps.Keys(asked)) {
			o.hear("b", grant(asked[name]))
		}
		o.rest(testTiming.Heartbeat / 2)
	}
}

// TestOthersRoundsWaitForTheirTurnToo: an agent has as many attempts in progress as it may. It asks
// for no votes if another agent's round makes it a nominee.
func TestOthersRoundsWaitForTheirTurnToo(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", election.Report{Voter: true})
	o.hear("c", election.Report{Voter: true})
	for i := range firstWindow {
		o.campaign(election.Name("job-" + time.Duration(i).String()))
	}
	asked := sentTo[election.VoteRequest](o.take(), "b")
	if len(asked) != firstWindow {
		t.Fatalf("it asks for the votes of %d elections, want %d", len(asked), firstWindow)
	}
	round := election.BullyElection{Election: "pay", Round: 1, Rank: election.Rank{Peer: "b", Priority: 50, JoinedAt: 'b'}}
	isPay := func(r election.VoteRequest) bool { return r.Election == "pay" }
	o.campaign("pay")
	o.hear("b", round)
	sent := o.take()
	if answers := sentTo[election.BullyAnswer](sent, "b"); len(answers) != 1 {
		t.Fatalf("answers %+v, want one: it ranks higher", answers)
	}
	if slices.ContainsFunc(sentTo[election.VoteRequest](sent, "b"), isPay) {
		t.Error("it asks for votes at once, beside all others")
	}
	o.hear("b", grant(asked[0]))
	if !slices.ContainsFunc(sentTo[election.VoteRequest](o.take(), "b"), isPay) {
		t.Error("it does not ask for votes once another attempt has ended")
	}
}

// TestARoundThatOthersBeganTakesItsTurnOnceItIsWon: the agent had room for one more attempt when
// the round began. It has none when the better candidate declines.
func TestARoundThatOthersBeganTakesItsTurnOnceItIsWon(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: []election.Candidacy{{Election: "pay", Priority: 200}}})
	o.campaign("pay")
	o.hear("c", election.BullyElection{Election: "pay", Round: 1, Rank: election.Rank{Peer: "c", Priority: 50, JoinedAt: 'c'}})
	asks := sentTo[election.BullyElection](o.take(), "b")
	if len(asks) != 1 {
		t.Fatalf("asks b %+v, want once", asks)
	}
	for i := range firstWindow {
		o.campaign(election.Name("job-" + time.Duration(i).String()))
	}
	asked := sentTo[election.VoteRequest](o.take(), "b")
	if len(asked) != firstWindow {
		t.Fatalf("it asks for the votes of %d elections, want %d", len(asked), firstWindow)
	}
	isPay := func(r election.VoteRequest) bool { return r.Election == "pay" }
	o.hear("b", election.BullyDecline{Election: "pay", Round: asks[0].Round})
	if slices.ContainsFunc(sentTo[election.VoteRequest](o.take(), "b"), isPay) {
		t.Error("it asks for votes at once, beside all others")
	}
	o.hear("b", grant(asked[0]))
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 2, Candidacies: []election.Candidacy{{Election: "pay", Priority: 0}}})
	if !slices.ContainsFunc(sentTo[election.VoteRequest](o.take(), "b"), isPay) {
		t.Error("it does not ask for votes once another attempt has ended")
	}
}

// TestAFloodThatIsAnsweredTooLateGetsSmaller: if voters answer too late, or not at all because they are too busy, they
// are asked about fewer elections at once. Refusals in time are no reason for that.
func TestAFloodThatIsAnsweredTooLateGetsSmaller(t *testing.T) {
	most := func(wait time.Duration, answer func(*solo, election.VoteRequest)) (n int) { // returns how many were in progress at once, until all had failed a few times
		o := newLone(t, trioState())
		o.hear("b", election.Report{Voter: true})
		o.hear("c", election.Report{Voter: true})
		for i := range 3 * firstWindow {
			o.campaign(election.Name("job-" + time.Duration(i).String()))
		}
		for end := o.now.Add(4 * testTiming.Lease); o.now < end; {
			asked := sentTo[election.VoteRequest](o.take(), "b")
			o.rest(wait)
			n = o.e.agenda.contesting
			for _, r := range asked {
				answer(o, r)
			}
		}
		return n
	}
	const late, soon = 600 * time.Millisecond, 20 * time.Millisecond
	for _, row := range []struct {
		what   string
		wait   time.Duration
		answer func(*solo, election.VoteRequest)
		want   int
	}{
		{"refused", soon, func(o *solo, r election.VoteRequest) {
			o.hear("b", election.VoteRefusal{Election: r.Election, Term: r.Term, Holder: r.Holder, Reason: election.RefusedPromised})
		}, firstWindow},
		{"not answered", late, func(*solo, election.VoteRequest) {}, minWindow},
		{"granted too late", late, func(o *solo, r election.VoteRequest) { o.hear("b", grant(r)) }, minWindow},
	} {
		if n := most(row.wait, row.answer); n != row.want {
			t.Errorf("%d attempts at once that are %s, want %d", n, row.what, row.want)
		}
	}
}
