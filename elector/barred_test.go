package elector

import (
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

var shared = election.Barred{Code: "data_dir_shared", Detail: "two agents use it"}

// Another process makes promises in this agent's name. Any further answer of the agent could make
// two leaders.
func TestABarredAgentLeadsNothing(t *testing.T) {
	o := rivals(t)
	o.step(shared)
	if len(o.withdrawn) != 1 || o.withdrawn[0].Reason != election.ReasonBarred {
		t.Fatalf("withdrawals %+v", o.withdrawn)
	}
	term := o.withdrawn[0].Term
	o.take()
	o.step(election.Stopped{Election: "pay", Term: term})
	if r := sentTo[election.Release](o.take(), "b"); len(r) != 1 {
		t.Fatalf("releases %+v", r)
	}
	o.rest(long)
	if asked := sentTo[election.VoteRequest](o.take(), "b"); len(asked) != 0 {
		t.Errorf("it stands again: %+v", asked)
	}
	codes := []string{}
	for _, w := range o.e.Status(o.now).Warnings {
		codes = append(codes, w.Code)
	}
	if !slices.Contains(codes, "data_dir_shared") || slices.Contains(codes, "disk_failing") {
		t.Errorf("warnings %v", codes)
	}
}

func TestABarredAgentPromisesNothing(t *testing.T) {
	o := newLone(t, trioState())
	b := election.Holder{Peer: "b", Lineage: 1}
	request := election.VoteRequest{Election: "pay", Term: 3, Holder: b, Lease: testTiming.Lease, Send: 1,
		Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *soloRoster}
	o.hear("b", request)
	if g := sentTo[election.VoteGrant](o.take(), "b"); len(g) != 1 {
		t.Fatalf("before: grants %+v", g)
	}
	o.step(shared)
	if r := sentTo[election.Report](o.take(), "b"); len(r) != 1 || r[0].Voter {
		t.Errorf("it reports as a voter: %+v", r)
	}
	o.hear("b", request)
	request.Term++
	o.hear("b", request)
	sent := o.take()
	if g, r := sentTo[election.VoteGrant](sent, "b"), sentTo[election.VoteRefusal](sent, "b"); len(g) != 0 || len(r) != 2 {
		t.Errorf("grants %+v, refusals %+v", g, r)
	}
	o.hear("b", election.Heartbeat{Lineage: 1, Send: 5, Version: soloRoster.Version,
		Claims: []election.Claim{{Election: "pay", Term: 3, Remaining: time.Second}}})
	if a := sentTo[election.HeartbeatAck](o.take(), "b"); len(a) != 1 || len(a[0].Nacks) != 1 {
		t.Errorf("it renews: %+v", a)
	}
	joint := *soloRoster
	joint.Version = election.Version{Driver: 9}
	joint.Next = joint.Voters[:2]
	o.hear("b", election.RosterPropose{Driver: 9, Holder: b, Roster: joint})
	o.hear("b", election.Inquiry{ID: 4, Durable: true})
	sent = o.take()
	if a := sentTo[election.RosterAccept](sent, "b"); len(a) != 0 {
		t.Errorf("it accepts a roster: %+v", a)
	}
	if r := sentTo[election.Report](sent, "b"); len(r) != 0 {
		t.Errorf("it says that it can write: %+v", r)
	}
}

// An agent is barred while it writes a grant. It must not send that grant.
func TestAGrantUnderWayIsNotSentOnceBarred(t *testing.T) {
	o := newLone(t, trioState())
	o.hang()
	o.hear("b", election.VoteRequest{Election: "pay", Term: 3, Holder: election.Holder{Peer: "b", Lineage: 1}, Lease: testTiming.Lease,
		Send: 1, Rank: election.Rank{Priority: 100, Peer: "b"}, Roster: *soloRoster})
	o.step(shared)
	o.step(election.Persisted{Write: o.begun})
	if g := sentTo[election.VoteGrant](o.take(), "b"); len(g) != 0 {
		t.Errorf("grants %+v", g)
	}
}

// Otherwise a command that waits for a write of a barred agent would wait forever.
func TestABarredAgentRefusesWhatWaitedForAWrite(t *testing.T) {
	o := newLone(t, trioState())
	ask := func(peer election.PeerID) election.VoteRequest {
		return election.VoteRequest{Election: "pay", Term: 3, Holder: election.Holder{Peer: peer, Lineage: 1}, Lease: testTiming.Lease, Send: 1,
			Rank: election.Rank{Priority: 100, Peer: peer}, Roster: *soloRoster}
	}
	o.stuck = true
	o.hear("b", ask("b"))
	o.hear("b", ask("b"))
	o.take()
	o.step(shared)
	if r := sentTo[election.VoteRefusal](o.take(), "b"); len(r) != 1 || r[0].Reason != election.RefusedUnavailable {
		t.Errorf("refusals %+v of what waited, want one", r)
	}
	newer := *soloRoster
	newer.Version.Counter++
	o.tells("b", &newer)
	o.hear("b", ask("b"))
	if r := sentTo[election.VoteRefusal](o.take(), "b"); len(r) != 1 || r[0].Reason != election.RefusedUnavailable {
		t.Errorf("refusals %+v of what came later, want one", r)
	}
	if o.e.HandingOver() {
		t.Error("it waits for a write that will never be made")
	}
}

// A barred agent could never carry out a change that it accepts, or would undo it at its next
// start.
func TestABarredAgentChangesNoVotersAndSaysWhy(t *testing.T) {
	for name, change := range map[string]election.ChangeRoster{
		"add":     {Add: voters("d")},
		"remove":  {Remove: []election.PeerID{"c"}},
		"cancel":  {Cancel: true},
		"restore": {Restore: true},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(name+" asked "+when, func(t *testing.T) {
				s := newLone(t, trioState())
				s.connect("d", election.Report{})
				switch name {
				case "restore":
					s.step(election.PeerLost{Peer: "c"})
					s.tells("b", elsewhere("a", "y", "z"))
					if s.e.ledger.State().Former == nil {
						t.Fatalf("holds %s, and nothing to go back to", s.holds())
					}
				case "cancel":
					joint := elsewhere("a", "b", "c")
					joint.Next = voters("a", "b", "d")
					s.tells("b", joint)
				}
				s.stuck = true
				s.clear()
				change.Request = 4
				if when == "after" {
					s.step(shared)
				}
				s.step(change)
				if when == "before" {
					if len(s.replies) != 0 {
						t.Fatalf("%+v, before anything is done", s.replies)
					}
					s.step(shared)
				}
				if len(s.replies) != 1 || s.replies[0].Refusal == nil || s.replies[0].Refusal.Why != election.DeniedBarred ||
					s.replies[0].Refusal.Barred.Detail != shared.Detail {
					t.Fatalf("%+v, want that it is refused, and why", s.replies)
				}
				s.pass(30 * time.Second)
				if len(s.replies) != 1 {
					t.Fatalf("answers again: %+v", s.replies)
				}
			})
		}
	}
}

// restoring is an agent whose disk hangs. Request 4 asks it to go back from the voters a, y and z
// to a, b and c.
func restoring(t *testing.T) *solo {
	s := newLone(t, trioState())
	s.step(election.PeerLost{Peer: "c"})
	s.tells("b", elsewhere("a", "y", "z"))
	s.stuck = true
	s.clear()
	s.step(election.ChangeRoster{Restore: true, Request: 4})
	return s
}

func TestRestoreIsAnsweredOnceItIsOnDisk(t *testing.T) {
	s := restoring(t)
	if len(s.replies) != 0 {
		t.Fatalf("%+v, while a,y,z are on the disk", s.replies)
	}
	s.step(election.ChangeRoster{Restore: true, Request: 5})
	if len(s.replies) != 1 || s.replies[0].Refusal == nil || s.replies[0].Refusal.Why != election.DeniedRestoring {
		t.Fatalf("asked again: %+v, want that it is under way", s.replies)
	}
	s.clear()
	s.step(election.Persisted{Write: s.begun})
	if len(s.replies) != 1 || s.replies[0].Refusal != nil || s.holds() != "a,b,c" {
		t.Fatalf("%+v, holds %s; want done, and a,b,c", s.replies, s.holds())
	}
}

func TestRestoreThatCannotBeWrittenSaysSo(t *testing.T) {
	s := restoring(t)
	s.pass(30 * time.Second)
	if len(s.replies) != 1 || s.replies[0].Refusal == nil || s.replies[0].Refusal.Why != election.DeniedNotRestored {
		t.Fatalf("%+v, want that it was not in time", s.replies)
	}
}
