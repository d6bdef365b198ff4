package contest_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// TestFactsGiveAVerdict: each row has the facts of a contest, one step, and what the verdict asks for.
func TestFactsGiveAVerdict(t *testing.T) {
	const def = election.Default
	advance := func(w *world) contest.Verdict { return w.Advance(w) }
	for _, row := range []struct {
		name  string
		given func(*world) // after New
		step  func(*world) contest.Verdict
		want  string
	}{
		// A follower seeks a leader.
		{"the best candidate starts a round at once", nil, advance, "starts a round; follower"},
		{"each better candidate is a quarter of a heartbeat ahead",
			func(w *world) { w.others = []election.Rank{rank("b", 200), rank("c", 200)} }, advance,
			"wakes +100; follower"},
		{"an agent that doubts itself is a turn later", func(w *world) { w.doubts = true }, advance, "wakes +50; follower"},
		{"it waits until enough voters have reported",
			func(w *world) { w.informedBy = start + 9e6 }, advance,
			"wakes +9; follower"},
		{"it waits in the queue while too many rounds are under way",
			func(w *world) { w.full = true }, advance,
			"waits in the queue; follower"},
		{"an agent that can't write starts nothing", func(w *world) { w.obstacle = election.CantWrite }, advance, "follower"},
		{"one that is no candidate starts nothing", func(w *world) { w.Stand(false, 0) }, advance, "follower"},
		{"one that the rights exclude starts nothing", func(w *world) { w.restrict("b") }, advance, "follower"},
		{"V5 one whose own vote is held back, and needed, waits for that",
			func(w *world) { w.holdEnd, w.gone = start.Add(2*time.Second), []election.PeerID{"c"} }, advance,
			"wakes +900; follower"},
		{"V5 one that can win without its own vote does not wait",
			func(w *world) { w.holdEnd = start.Add(2 * time.Second) }, advance,
			"starts a round; wakes +900; follower"},
		{"late agents lead where nobody else has for two leases",
			func(w *world) { w.obstacle = election.RunsLate; w.Advance(w); w.after(2 * lease) }, advance,
			"starts a round; follower"},
		{"one of priority 0 starts nothing", func(w *world) { w.Stand(true, 0) }, advance, "follower"},
		{"a better candidate that has just stepped down is not waited for", func(w *world) {
			w.others = []election.Rank{rank("b", 200)}
			w.follows("b", 5)
			w.releases("b", 5, "", lease)
		}, advance, "starts a round; follower"},
		{"a round of others waits in the queue too",
			func(w *world) { w.full, w.chooser.nominates = true, true }, func(w *world) contest.Verdict { return w.Receive(w, "b", election.BullyElection{}) },
			"answers; waits in the queue; follower"},

		// A nominee asks for votes.
		{"a nominee asks all voters",
			func(w *world) { w.chooser.nominates = true }, advance,
			"Vote Request term 1 to a,b,c; starts a round; wakes +100; nominee"},
		{"H1 above all terms that it has learned",
			func(w *world) { w.Learn(7); w.chooser.nominates = true }, advance,
			"Vote Request term 8 to a,b,c; starts a round; wakes +100; nominee"},
		{"R5 above the roster's floor",
			func(w *world) { w.raiseFloor(10); w.chooser.nominates = true }, advance,
			"Vote Request term 11 to a,b,c; starts a round; wakes +100; nominee"},
		{"H1 never for a term that it has asked for",
			func(w *world) { w.nominee(); w.refuseAll(1); w.Advance(w); w.after(lease) }, advance,
			"Vote Request term 2 to a,b,c; starts a round; wakes +100; nominee"},
		{"it asks again after half a heartbeat",
			func(w *world) { w.nominee().after(heartbeat / 2) }, advance,
			"Vote Request term 1 to a,b,c; wakes +150; nominee"},
		{"and then every three quarters",
			func(w *world) { w.nominee().after(heartbeat / 2); w.Advance(w); w.after(heartbeat * 3 / 4) }, advance,
			"Vote Request term 1 to a,b,c; wakes +150; nominee"},
		{"it asks a voter that has just connected",
			func(w *world) { w.nominee() }, func(w *world) contest.Verdict { return w.Reconnected(w, "c") },
			"Vote Request term 1 to c; nominee"},
		{"H5 it leads with a majority's votes",
			func(w *world) { w.nominee(); w.grants("a", 1); w.grants("b", 1) }, advance,
			"announces leading a 1; beats; wakes +1150; leader"},
		{"H5 and not without", func(w *world) { w.nominee(); w.grants("b", 1) }, advance, "wakes +100; nominee"},
		{"a vote of an agent that is no voter does not count",
			func(w *world) { w.nominee(); w.grants("b", 1); w.grants("z", 1) }, advance,
			"wakes +100; nominee"},
		{"a vote that answers a send that is too old does not count",
			func(w *world) { w.nominee(); w.grants("b", 1); w.stale("c", 1) }, advance,
			"wakes +100; nominee"},
		{"a vote for another version of the roster does not count",
			func(w *world) { w.nominee(); w.grants("b", 1); w.otherVersion("c", 1) }, advance,
			"wakes +100; nominee"},
		{"H3 it does not lead when too little of the lease is left",
			func(w *world) {
				w.promiseEnd = start.Add(lease)
				w.nominee()
				w.grants("a", 1)
				w.grants("b", 1)
				w.after(lease - heartbeat/4)
			}, advance,
			"Vote Request term 1 to a,b,c; wakes +150; nominee"},
		{"a vote for a bid that it gave up is given back",
			func(w *world) { w.nominee(); w.refuseAll(1); w.Advance(w) }, func(w *world) contest.Verdict { return w.grants("b", 1) },
			"Release term 1 to b; follower"},
		{"it gives a split vote up", func(w *world) {
			w.nominee()
			w.refuses("b", 1, election.RefusedPromised, 1)
			w.refuses("c", 1, election.RefusedPromised, 1)
		}, advance, "Release term 1 to a,b,c; wakes +153; follower"},
		{"where only the term was too low it asks for a higher one", func(w *world) {
			w.nominee()
			w.refuses("b", 1, election.RefusedStaleTerm, 4)
			w.refuses("c", 1, election.RefusedStaleTerm, 4)
			w.Learn(4)
		}, advance, "Release term 1 to a,b,c; Vote Request term 5 to a,b,c; wakes +100; nominee"},
		{"H1 a term that a majority refuses as made up is forgotten",
			func(w *world) { w.Learn(1 << 40); w.nominee(); w.Learn(1 << 30); w.refuseLeap() }, advance,
			"Release term 1 to a,b,c; Vote Request term 2 to a,b,c; leap; wakes +100; nominee"},
		{"it gives up a vote timeout after the last promise",
			func(w *world) { w.promiseEnd = start.Add(time.Second); w.nominee().after(1400 * time.Millisecond) }, advance,
			"Release term 1 to a,b,c; late; wakes +153; follower"},
		{"a vote that comes then is late",
			func(w *world) { w.nominee().after(heartbeat * 2); w.Advance(w) }, func(w *world) contest.Verdict { return w.grants("b", 1) },
			"Release term 1 to b; late; follower"},
		{"it gives up when a better candidate asks for votes",
			func(w *world) { w.nominee() }, func(w *world) contest.Verdict { return w.HeedRound(w, rank("b", 200)) },
			"Release term 1 to a,b,c; waits for b; follower"},
		{"and goes on when a worse one does",
			func(w *world) { w.nominee() }, func(w *world) contest.Verdict { return w.HeedRound(w, rank("b", 50)) },
			"nominee"},
		{"it gives up when a leader shows itself",
			func(w *world) { w.nominee() }, func(w *world) contest.Verdict { return w.claims("b", 1, start.Add(lease)) },
			"Release term 1 to a,b,c; announces following b 1; follower"},

		{"H4 votes for another term do not count",
			func(w *world) { w.nominee(); w.grants("a", 9); w.grants("b", 9) }, advance,
			"wakes +100; nominee"},
		{"H4 a voter counts once",
			func(w *world) { w.nominee(); w.grants("b", 1); w.grants("b", 1) }, advance,
			"wakes +100; nominee"},
		{"H3 a vote counts from the send that it answers",
			func(w *world) { w.nominee().after(heartbeat / 2); w.late("a", 1); w.late("b", 1) }, advance,
			"announces leading a 1; beats; wakes +1050; leader"},
		{"H2 a bid ends with a suspend", func(w *world) { w.nominee() }, func(w *world) contest.Verdict { return w.Suspended(w) },
			"Release term 1 to a,b,c; follower"},

		// A follower and its leader.
		{"a claim names the leader",
			nil, func(w *world) contest.Verdict { return w.claims("b", 5, start.Add(lease)) },
			"announces following b 5; follower"},
		{"G5 whose lease may have expired is not named",
			nil, func(w *world) contest.Verdict { return w.claims("b", 5, start) },
			"follower"},
		{"but awaited", func(w *world) { w.claims("b", 5, start) }, advance, "wakes +400; follower"},
		{"a claim of an older term is a late message",
			func(w *world) { w.follows("b", 5) }, func(w *world) contest.Verdict { return w.claims("c", 4, start.Add(lease)) },
			"follower"},
		{"a claim far above all terms is not believed",
			nil, func(w *world) contest.Verdict { return w.claims("b", 1<<40, start.Add(lease)) }, "leap; follower"},
		{"G5 a leader is named until its lease expires",
			func(w *world) { w.follows("b", 5).after(lease) }, advance,
			"announces none  5; starts a round; b has expired; follower"},
		{"a lost leader is named, and a round starts",
			func(w *world) { w.follows("b", 5); w.gone = []election.PeerID{"b"} }, advance,
			"starts a round; wakes +1200; follower"},
		{"one whose heartbeats are overdue too",
			func(w *world) { w.follows("b", 5); w.suspectAt = start }, advance,
			"starts a round; suspects; wakes +1200; follower"},
		{"a live one is left alone",
			func(w *world) { w.follows("b", 5); w.suspectAt = start.Add(heartbeat) }, advance, "wakes +200; follower"},
		{"the target of a release asks for votes without a round",
			func(w *world) { w.follows("b", 5) }, func(w *world) contest.Verdict { return w.releases("b", 5, "a", 0) },
			"Vote Request term 6 to a,b,c; announces none  5; wakes +100; nominee"},
		{"the others let it go first",
			func(w *world) { w.follows("b", 5); w.releases("b", 5, "c", 0) }, advance, "wakes +400; follower"},
		{"a release of an overtaken term changes nothing",
			func(w *world) { w.follows("b", 5) }, func(w *world) contest.Verdict { return w.releases("b", 4, "a", 0) },
			"follower"},
		{"nor does a voter that has not heard of it",
			func(w *world) { w.follows("b", 5); w.releases("b", 5, "", 0); w.reports("b", 5) }, advance,
			"starts a round; follower"},
		{"a leader that a voter reports is awaited before it is connected",
			func(w *world) {
				w.reports("b", 5)
				w.gone = []election.PeerID{"b"}
				w.connectsBy = start.Add(heartbeat)
			}, advance,
			"wakes +200; follower"},
		{"and not for longer",
			func(w *world) { w.reports("b", 5); w.gone = []election.PeerID{"b"} }, advance, "starts a round; follower"},
		{"nor does a claim of a released term",
			func(w *world) { w.follows("b", 5); w.releases("b", 5, "", 0) }, func(w *world) contest.Verdict { return w.claims("b", 5, start.Add(lease)) },
			"follower"},
		{"after a suspend the leader has to show itself again",
			func(w *world) { w.follows("b", 5) }, func(w *world) contest.Verdict { return w.Suspended(w) },
			"announces none  5; follower"},

		// A leader.
		{"G3 it steps down before its lease ends",
			func(w *world) { w.leader().after(lease - heartbeat/4) }, func(w *world) contest.Verdict { return w.StepDown(w, election.ReasonLeaseExpired, "") },
			"withdraws from 1 by +50: lease expired; announces none  1; again; wakes +50; leaving"},
		{"it steps down for a higher term of a voter",
			func(w *world) { w.leader() }, func(w *world) contest.Verdict { return w.claims("b", 2, start.Add(lease)) },
			"withdraws from 1 by +1200: superseded by a higher term; announces none  1; again; wakes +1200; leaving"},
		{"and believes no other agent",
			func(w *world) { w.leader() }, func(w *world) contest.Verdict { return w.claims("z", 2, start.Add(lease)) },
			"leader"},
		{"R6 it takes a higher term when a majority disputes its own",
			func(w *world) { w.leader(); w.nacks("b", 9); w.nacks("c", 9) }, advance,
			"Vote Request term 10 to a,b,c; wakes +100; leader"},
		{"R6 it leads on in that term with a majority's votes",
			func(w *world) { w.leader(); w.Overtake(); w.Advance(w); w.grants("a", 2); w.grants("c", 2) }, advance,
			"announces term a 2; beats; wakes +1150; leader"},
		{"one dispute alone is borne for a while",
			func(w *world) { w.leader(); w.nacks("b", 9) }, advance,
			"wakes +600; leader"},
		{"R6 and for three heartbeats only, so that one more loss ends nothing",
			func(w *world) { w.leader(); w.nacks("b", 9); w.after(3*heartbeat).renewBy("a", "c") }, advance,
			"Vote Request term 10 to a,b,c; wakes +100; leader"},
		{"H6 a higher term is not led with less of a lease than was announced", func(w *world) {
			w.leader()
			w.Overtake()
			w.Advance(w)
			w.after(heartbeat).renew()
			w.old("a", 2)
			w.old("c", 2)
		}, advance, "Vote Request term 2 to a,b,c; wakes +150; leader"},
		{"H4 an answer to a heartbeat before its term renews nothing",
			func(w *world) { w.leader().after(heartbeat); w.send = 5; w.beat(); w.renewed(4) }, advance,
			"wakes +950; leader"},
		{"G5 a late claim of the term before is not believed", func(w *world) {
			w.Learn(7)
			w.nominee()
			w.grants("a", 8)
			w.grants("b", 8)
			w.Advance(w)
			w.resign()
			w.Stopped(8)
			w.Advance(w)
		}, func(w *world) contest.Verdict { return w.claims("b", 7, start.Add(lease)) }, "follower"},
		{"an equal priority does not take over", func(w *world) {
			w.leader()
			w.others = []election.Rank{rank("B", 100)}
			w.Advance(w)
			w.renew().after(time.Second)
		}, advance, "wakes +150; leader"},
		{"a voter that has no record of the term is asked for its vote",
			func(w *world) { w.leader() }, func(w *world) contest.Verdict { return w.nacks("b", 0) },
			"Vote Request term 1 to b; leader"},
		{"R5 it takes a higher term when the floor rises to its own",
			func(w *world) { w.leader(); w.raiseFloor(1); w.Reroster(w) }, advance,
			"Vote Request term 2 to a,b,c; wakes +100; leader"},
		{"a higher priority takes over after the delay", func(w *world) {
			w.leader()
			w.others = []election.Rank{rank("b", 200)}
			w.Advance(w)
			w.renew().after(time.Second)
		}, advance, "withdraws from 1 by +200: preempted by a higher priority; announces none  1; again; wakes +150; leaving"},
		{"and not before", func(w *world) {
			w.leader()
			w.others = []election.Rank{rank("b", 200)}
			w.Advance(w)
			w.after(time.Second - time.Millisecond)
		}, advance, "wakes +1; leader"},
		{"nor with another roster", func(w *world) {
			w.leader()
			w.others, w.elsewhere = []election.Rank{rank("b", 200)}, []election.PeerID{"b"}
			w.Advance(w)
			w.renew().after(time.Second)
		}, advance, "wakes +150; leader"},
		{"it steps down when the rights exclude it",
			func(w *world) { w.leader(); w.restrict("b") }, advance,
			"withdraws from 1 by +1200: the cluster's rights do not let it lead any more; announces none  1; again; wakes +1200; leaving"},
		{"it steps down after a suspend",
			func(w *world) { w.leader() }, func(w *world) contest.Verdict { return w.Suspended(w) },
			"withdraws from 1 by +1200: its host was suspended; announces none  1; again; wakes +1200; leaving"},

		// The end of a leadership.
		{"H6 nothing is released before all have stopped",
			func(w *world) { w.leader(); w.resign() }, advance,
			"wakes +1200; leaving"},
		{"H6 once they have, it is",
			func(w *world) { w.leader(); w.resign(); w.Stopped(1) }, advance,
			"Release term 1 to a,b,c; wakes +1200; follower"},
		{"H6 a receipt for another term does not count",
			func(w *world) { w.leader(); w.resign(); w.Stopped(2) }, advance,
			"wakes +1200; leaving"},
		{"H6 the last deadline counts as a receipt",
			func(w *world) { w.leader(); w.resign(); w.after(lease) }, advance,
			"Release term 1 to a,b,c; wakes +1200; follower"},
		{"a term asked for on top is released first",
			func(w *world) { w.leader(); w.Overtake(); w.Advance(w); w.resign(); w.Stopped(1) }, advance,
			"Release term 2 to a,b,c; Release term 1 to a,b,c; wakes +1200; follower"},
		{"a transfer names its target", func(w *world) {
			w.leader()
			w.others = []election.Rank{rank("b", 100), rank("c", 100)}
			w.StepDown(w, election.ReasonTransferred, "c")
			w.Stopped(1)
		}, advance, "Release term 1 for c to a,b,c; wakes +800; follower"},
		{"a withdrawal names the best that is left", func(w *world) {
			w.leader()
			w.others = []election.Rank{rank("b", 100), rank("c", 300)}
			w.Stand(false, 0)
			w.StepDown(w, election.ReasonWithdrawn, "")
			w.Stopped(1)
		}, advance, "Release term 1 for c to a,b,c; follower"},
		{"a rival that is gone by then is not named",
			func(w *world) { w.leader(); w.StepDown(w, election.ReasonPreempted, ""); w.Stopped(1) }, advance,
			"Release term 1 to a,b,c; Vote Request term 2 to a,b,c; starts a round; wakes +100; nominee"},

		{"it lets the leader that superseded it go first", func(w *world) {
			w.leader()
			w.StepDown(w, election.ReasonSuperseded, "")
			w.claims("b", 2, start.Add(lease))
			w.Stopped(1)
		}, advance, "Release term 1 to a,b,c; wakes +400; follower"},

		// Lives.
		{"K4 the next life leads on in the same term",
			func(w *world) { w.Resume(w.past(3, ""), w.lease(3)) }, advance,
			"wakes +550; leader"},
		{"K4b it withdraws again what was ending",
			func(w *world) { w.Resume(w.past(3, election.ReasonResigned), w.lease(3)) }, func(w *world) contest.Verdict { return w.Resumed(w) },
			"withdraws from 3 by +600: resigned; announces none  3; leaving"},
		{"K4b and releases it no earlier",
			func(w *world) { w.Resume(w.past(3, election.ReasonResigned), w.lease(3)) }, advance,
			"wakes +600; leaving"},
		{"K4e it takes a higher term where it is asked to",
			func(w *world) { w.Resume(w.past(3, ""), w.lease(3)); w.Overtake() }, advance,
			"Vote Request term 4 to a,b,c; wakes +100; leader"},
		{"K4 its release is repeated to those that connect", func(w *world) { w.Resume(w.past(3, election.ReasonResigned), w.lease(3)); w.Stopped(3); w.Advance(w) },
			func(w *world) contest.Verdict { return w.Reconnected(w, "b") }, "Release term 3 to b; follower"},
		{"K4 until its lease has ended anyway", func(w *world) {
			w.Resume(w.past(3, election.ReasonResigned), w.lease(3))
			w.Stopped(3)
			w.Advance(w)
			w.after(lease)
		},
			func(w *world) contest.Verdict { return w.Reconnected(w, "b") }, "follower"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(def, nil)
			if row.given != nil {
				row.given(w)
			}
			w.chooser.did = nil
			w.counts = contest.Counts{}
			if got := w.brief(row.step(w)); got != row.want {
				t.Errorf("\n got %q\nwant %q", got, row.want)
			}
		})
	}
}

func TestG3ALeaseEndsForItsLeaderBeforeItEndsForTheVoters(t *testing.T) {
	w := newWorld(election.Default, nil).leader()
	if at := w.now.Add(lease - heartbeat/4); w.Ends(at-1) || !w.Ends(at) {
		t.Errorf("ends before its time: %t; at it: %t", w.Ends(at-1), w.Ends(at))
	}
}

func TestG5NothingIsClaimedOfALeaseThatASuspendMayHaveOutlasted(t *testing.T) {
	led, leaving := newWorld(election.Default, nil).leader(), newWorld(election.Default, nil).leader()
	leaving.resign()
	if !led.Claimable() || !leaving.Claimable() {
		t.Fatal("a leader, or one that hands over, claims nothing")
	}
	led.Suspended(led)
	leaving.Suspended(leaving)
	if led.Claimable() || leaving.Claimable() {
		t.Errorf("claims after a suspend: %t and %t", led.Claimable(), leaving.Claimable())
	}
}

func TestK1AnAuthorityHasAllThatMayHaveBeenAnnounced(t *testing.T) {
	until := start.Add(lease)
	for name, row := range map[string]struct {
		election election.Name
		given    func(*world)
		want     election.Authority
	}{
		"a candidate": {election.Default, nil, election.Authority{Election: election.Default, Priority: 100}},
		"a nominee":   {election.Default, func(w *world) { w.nominee() }, election.Authority{Election: election.Default, Highest: 1, Priority: 100}},
		"a leader": {election.Default, func(w *world) { w.leader() },
			election.Authority{Election: election.Default, Highest: 1, Term: 1, Until: until, Priority: 100}},
		"a transfer": {election.Default, func(w *world) { w.leader(); w.StepDown(w, election.ReasonTransferred, "b") },
			election.Authority{Election: election.Default, Highest: 1, Term: 1, Until: until, Priority: 100,
				Ending: election.Ending{Reason: election.ReasonTransferred, To: "b", StopBy: until}}},
		"a transfer before a suspend": {election.Default, func(w *world) { w.leader(); w.StepDown(w, election.ReasonTransferred, "b"); w.Suspended(w) },
			election.Authority{Election: election.Default, Highest: 1, Term: 1, Until: until, Priority: 100,
				Ending: election.Ending{Reason: election.ReasonSuspended, To: "b", StopBy: until}}},
		"K8 the roster election's leader": {election.RosterElection, func(w *world) { w.leader() },
			election.Authority{Election: election.RosterElection, Highest: 1}},
	} {
		w := newWorld(row.election, nil)
		if row.given != nil {
			row.given(w)
		}
		if got := w.Authority(); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}
