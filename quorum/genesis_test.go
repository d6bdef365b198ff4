package quorum

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// founder is one agent that takes part in making a first roster.
type founder struct {
	t         *testing.T
	self      election.Voter
	names     []string
	now       election.Instant
	disk      election.State
	ledger    *Ledger
	formation *Formation
	voter     *Voter
	reported  *election.Roster // the newest roster that it sent to the other founders in a Report
}

func newFounder(t *testing.T, name string, peer election.PeerID, names ...string) *founder {
	f := &founder{t: t, self: election.Voter{Name: name, Peer: peer}, names: names, disk: election.State{Peer: peer}}
	f.start()
	return f
}

func (f *founder) start() {
	f.ledger = NewLedger(f.disk, testLease)
	f.voter = NewVoter(election.Config{Quorum: true, Self: election.Holder{Peer: f.self.Peer}, Drift: testDrift, Timing: election.Timing{Lease: testLease, Heartbeat: timeout / 2}}, f.ledger, 0)
	f.reported = nil
	f.formation = NewFormation(f.self, f.names, timeout, f.ledger, f.voter)
}

// settle makes the due write durable, and returns the messages that waited for it.
func (f *founder) settle(now election.Instant) []election.Envelope {
	if w := f.ledger.Next(now); w != nil {
		f.disk = f.disk.After(w)
		f.ledger.Persisted(w.Write)
	}
	f.voter.Settle(now)
	out := f.ledger.Take()
	if r := f.voter.Roster(); r != f.reported {
		f.reported = r
		for _, v := range r.Voters {
			if v.Peer != f.self.Peer {
				out = append(out, election.Envelope{To: v.Peer, Message: election.Report{Voter: true, Roster: r}})
			}
		}
	}
	return out
}

func (f *founder) receive(from election.PeerID, m election.Message) {
	switch m := m.(type) {
	case election.GenesisPropose:
		f.formation.Propose(f.now, from, m)
	case election.GenesisAccept:
		f.formation.Accept(from, m)
	case election.GenesisRefuse:
		f.formation.Refuse(from, string(from), m)
	case election.Report:
		f.formation.Learn(f.now, m.Roster)
	}
}

// run delivers the founders' messages until none is left. It drops those for which the function cut returns true.
func run(now election.Instant, founders map[election.PeerID]*founder, cut func(from, to election.PeerID, m election.Message) bool) {
	find := func(name string) (election.PeerID, bool) {
		for id, f := range founders {
			if f.self.Name == name {
				return id, true
			}
		}
		return "", false
	}
	for _, f := range founders {
		f.now = now
	}
	for range 10 {
		for _, id := range []election.PeerID{"pa", "pb", "pc", "pd"} {
			f := founders[id]
			if f == nil {
				continue
			}
			f.formation.Advance(now, find, func() string { return "cluster-by-" + string(id) })
			for _, m := range f.settle(now) {
				if to := founders[m.To]; to != nil && (cut == nil || !cut(id, m.To, m.Message)) {
					to.receive(id, m.Message)
				}
			}
		}
	}
}

func trio(t *testing.T) map[election.PeerID]*founder {
	return map[election.PeerID]*founder{
		"pa": newFounder(t, "a", "pa", "a", "b", "c"),
		"pb": newFounder(t, "b", "pb", "a", "b", "c"),
		"pc": newFounder(t, "c", "pc", "a", "b", "c"),
	}
}

func TestGenesisCommitsOnceAllNamedAccepted(t *testing.T) {
	fs := trio(t)
	absent := fs["pc"]
	delete(fs, "pc")
	run(at(0), fs, nil)
	if fs["pa"].formation.Done() || !reflect.DeepEqual(fs["pa"].formation.Problem(fs["pa"].now), Problem{Why: AwaitsAgents, Agents: []string{"c"}}) {
		t.Fatalf("with c absent: %+v", fs["pa"].formation.Problem(fs["pa"].now))
	}
	fs["pc"] = absent
	run(at(1000), fs, nil)
	for id, f := range fs {
		if !f.formation.Done() || f.disk.Roster == nil || f.disk.Pending != nil {
			t.Errorf("%s is not formed: %+v", id, f.formation.Problem(f.now))
		}
	}
}

func TestAPendingGenesisBindsAgainstAWipedProposer(t *testing.T) {
	fs := trio(t)
	// All accept, but none learns of the commit. Then the first agent loses its disk.
	run(at(0), fs, func(from, to election.PeerID, m election.Message) bool {
		_, tells := m.(election.Report)
		return tells
	})
	delete(fs, "pa")
	fs["pd"] = newFounder(t, "a", "pd", "a", "b", "c")
	run(at(1000), fs, nil)
	if fs["pd"].formation.Done() || fs["pb"].formation.Done() {
		t.Fatal("a second genesis was committed from overlapping voters")
	}
	theirs := Refused{Agent: "pb", Reason: election.GenesisPendingFormer, Detail: "a"}
	if p := fs["pd"].formation.Problem(at(1000)); p.Why != RefusedThere || !slices.Contains(p.Refused, theirs) {
		t.Errorf("the wiped agent reports %+v, want who refuses and what to do", p)
	}
	own := Problem{Why: RefusedHere, Agents: []string{"a"}, Voters: "a,b,c",
		Refused: []Refused{{Reason: election.GenesisPendingFormer, Detail: "a"}}}
	if p := fs["pb"].formation.Problem(at(1000)); !reflect.DeepEqual(p, own) {
		t.Errorf("the agent that refuses reports %+v, want %+v", p, own)
	}
	// No agent proposes that genesis any more.
	if p := fs["pb"].formation.Problem(at(1000).Add(11 * timeout)); p.Why != AwaitsCommit {
		t.Errorf("long after the last proposal it still reports %+v", p)
	}
}

func TestALaterAttemptOfTheSameProposerReplacesItsEarlierOne(t *testing.T) {
	fs := trio(t)
	run(at(0), fs, func(from, to election.PeerID, m election.Message) bool { return to == "pc" })
	// c never accepted, and comes back with another identity: the proposer tries again.
	delete(fs, "pc")
	fs["pd"] = newFounder(t, "c", "pd", "a", "b", "c")
	run(at(1000), fs, nil)
	for id, f := range fs {
		if !f.formation.Done() || !f.voter.Roster().Has("pd") {
			t.Errorf("%s is not formed with the new c: %+v", id, f.formation.Problem(f.now))
		}
	}
	if fs["pa"].disk.Attempt != 2 {
		t.Errorf("attempt %d, want 2", fs["pa"].disk.Attempt)
	}
}

func TestOnlyThePendingGenesisIsCommitted(t *testing.T) {
	f := newFounder(t, "b", "pb", "a", "b", "c")
	g := election.Genesis{Proposer: "pa", Attempt: 1, Roster: election.Roster{Cluster: "x", Version: election.Version{Counter: 1},
		Voters: []election.Voter{{Name: "a", Peer: "pa"}, {Name: "b", Peer: "pb"}, {Name: "c", Peer: "pc"}}}}
	f.formation.Learn(0, &g.Roster)
	f.settle(0)
	if f.formation.Done() {
		t.Fatal("an agent that accepted nothing adopted a genesis that names it")
	}
	f.formation.Propose(0, "pa", election.GenesisPropose{Genesis: g})
	f.settle(at(1))
	other := g.Roster
	other.Cluster = "y"
	f.formation.Learn(at(2), &other)
	f.settle(at(2))
	if f.formation.Done() || f.formation.Problem(at(2)).Why != CommittedElsewhere {
		t.Fatalf("adopted another genesis than the one it accepted, or reports %+v", f.formation.Problem(at(2)))
	}
	f.formation.Learn(at(3), &g.Roster)
	f.settle(at(3))
	if !f.formation.Done() {
		t.Fatal("the genesis that it accepted is not adopted")
	}
}

func TestAnAcceptedGenesisSurvivesARestart(t *testing.T) {
	fs := trio(t)
	run(at(0), fs, func(from, to election.PeerID, m election.Message) bool {
		return to == "pc"
	})
	fs["pb"].start()
	if fs["pb"].ledger.State().Pending == nil {
		t.Fatal("the pending genesis is forgotten")
	}
	fs["pa"].start()
	run(at(1000), fs, nil)
	for id, f := range fs {
		if !f.formation.Done() {
			t.Errorf("%s is not formed after the restarts: %+v", id, f.formation.Problem(f.now))
		}
	}
}

func TestGenesisIsRefusedByAnAgentStartedWithOtherVoters(t *testing.T) {
	fs := trio(t)
	fs["pc"] = newFounder(t, "c", "pc", "a", "c")
	run(at(0), fs, nil)
	if p := fs["pa"].formation.Problem(fs["pa"].now); p.Why != RefusedThere || p.Refused[0] != (Refused{Agent: "pc", Reason: election.GenesisOtherVoters, Detail: "a,c"}) {
		t.Fatalf("the proposer reports %+v, want the other's --voters", p)
	}
}

func TestNothingAboutGenesisIsSaidBeforeItIsOnDisk(t *testing.T) {
	fs := trio(t)
	run(at(0), fs, func(_, to election.PeerID, _ election.Message) bool { return to == "pc" })
	proposal := election.GenesisPropose{Genesis: *fs["pa"].disk.Pending}
	fs["pc"].formation.Propose(0, "pa", proposal)
	if out := fs["pc"].ledger.Take(); len(out) != 0 {
		t.Fatalf("c says %+v before it has written", out)
	}
	out := fs["pc"].settle(at(1))
	if len(out) != 1 || fs["pc"].disk.Pending == nil {
		t.Fatalf("c says %+v after it has written, want its acceptance", out)
	}
	fs["pa"].receive("pc", out[0].Message)
	fs["pa"].formation.Advance(at(2), func(name string) (election.PeerID, bool) {
		return election.PeerID("p" + name), true
	}, func() string { return "" })
	fs["pa"].voter.Settle(at(2))
	if out := fs["pa"].ledger.Take(); len(out) != 0 || fs["pa"].formation.Done() {
		t.Fatalf("a goes on under the roster, or tells %+v, before it has written what it commits", out)
	}
	if out := fs["pa"].settle(at(3)); len(out) != 2 || fs["pa"].disk.Roster == nil {
		t.Fatalf("a tells %+v, want both others", out)
	}
}

// A refusal with a longer detail would never be sent, and the proposer would wait without learning
// why.
func TestARefusalNamesOnlyAsManyVotersAsFitIntoItsDetail(t *testing.T) {
	var names []string
	for i := range election.MaxVoters {
		names = append(names, fmt.Sprintf("%02d%s", i, strings.Repeat("x", 61)))
	}
	c := newFounder(t, names[0], "pc", names...)
	c.formation.Propose(0, "pa", election.GenesisPropose{Genesis: election.Genesis{Proposer: "pa", Attempt: 1,
		Roster: election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: []election.Voter{{Name: "a", Peer: "pa"}, c.self}}}})
	out := c.settle(at(0))
	if len(out) != 1 {
		t.Fatalf("it answers %+v", out)
	}
	m := out[0].Message.(election.GenesisRefuse)
	if m.Reason != election.GenesisOtherVoters || len(m.Detail) > election.MaxDetail || !strings.Contains(m.Detail, names[1]) {
		t.Fatalf("reason %d, a detail of %d bytes: %s", m.Reason, len(m.Detail), m.Detail)
	}
}
