package elector

import (
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// hang makes a's disk complete no writes from now on.
func (s *solo) hang() { s.stuck = true }

// lead lets b and c renew a's lease for that time, or until a withdraws. Only the given writers
// answer a's question whether they can write.
func (s *solo) lead(d time.Duration, writers ...election.PeerID) (asked []delivery) {
	s.t.Helper()
	for end := s.now.Add(d); s.now < end; {
		for _, m := range s.keep(testTiming.Heartbeat, "b", "c") {
			q, ok := m.Message.(election.Inquiry)
			if !ok || !q.Durable {
				continue
			}
			asked = append(asked, m)
			for _, w := range writers {
				if w == m.To {
					s.hear(w, election.Report{ID: q.ID, Voter: true, Roster: soloRoster, Stamp: s.now})
				}
			}
			if len(s.withdrawn) > 0 {
				return asked
			}
		}
	}
	return asked
}

func rivals(t *testing.T) *solo {
	o := newLone(t, trioState())
	o.elect("pay")
	o.hear("b", election.Candidacies{Lineage: 1, Serial: 1, Candidacies: jobs("pay")})
	return o
}

var long = 3 * 5 * testTiming.Lease // three times the patience with a disk

func TestALeaderWritesFromTimeToTime(t *testing.T) {
	o := rivals(t)
	before := o.writes
	if asked := o.lead(long, "b", "c"); len(asked) != 0 {
		t.Errorf("it asks others to write though its disk does: %v", asked)
	}
	if n := o.writes - before; n < 2 || n > 4 {
		t.Errorf("%d writes in %s", n, long)
	}
	if !o.leads("pay") {
		t.Error("it leads no more")
	}
}

func TestALeaderWhoseDiskHangsHandsOverToWhoCanWrite(t *testing.T) {
	o := rivals(t)
	o.hang()
	o.lead(long, "b", "c")
	if len(o.withdrawn) != 1 || o.withdrawn[0].Reason != election.ReasonDisk {
		t.Fatalf("withdrawals %+v", o.withdrawn)
	}
	term := o.withdrawn[0].Term
	o.take()
	o.step(election.Stopped{Election: "pay", Term: term})
	if r := sentTo[election.Release](o.take(), "b"); len(r) != 1 || r[0].Target != "b" {
		t.Fatalf("releases %+v", r)
	}
	if s := o.status("pay"); s.State == Leading {
		t.Error("it still leads")
	}
	o.rest(long)
	sent := o.take()
	if asked := sentTo[election.VoteRequest](sent, "b"); len(asked) != 0 {
		t.Errorf("it stands again with a disk that hangs: %+v", asked)
	}
	told := sentTo[election.Candidacies](sent, "b")
	if len(told) == 0 || len(told[0].Candidacies) != 1 || told[0].Candidacies[0].Priority != 0 {
		t.Errorf("the others are told of a candidate that they may give way to: %+v", told)
	}
	o.stuck = false
	o.step(election.Persisted{Write: o.begun})
	o.rest(testTiming.Heartbeat)
	told = sentTo[election.Candidacies](o.take(), "b")
	if len(told) == 0 || told[len(told)-1].Candidacies[0].Priority != 100 {
		t.Errorf("its disk writes again, and the others are told %+v", told)
	}
}

// All hosts may share one storage. Then no vote could be given, and a leader is worth more than no
// leader.
func TestALeaderStaysWhereNoMajorityCanWrite(t *testing.T) {
	for name, writers := range map[string][]election.PeerID{"nobody": nil, "one of two": {"b"}} {
		o := rivals(t)
		o.hang()
		if asked := o.lead(long, writers...); len(asked) == 0 {
			t.Errorf("%s can write: it asked nobody", name)
		}
		if len(o.withdrawn) != 0 || !o.leads("pay") {
			t.Errorf("%s can write: it withdrew: %+v", name, o.withdrawn)
		}
	}
}

func TestALeaderStaysWhereNobodyElseStands(t *testing.T) {
	o := newLone(t, trioState())
	o.elect("pay")
	o.hang()
	o.lead(long, "b", "c")
	if len(o.withdrawn) != 0 || !o.leads("pay") {
		t.Errorf("it withdrew: %+v", o.withdrawn)
	}
}

func TestAnswersAreGivenOnceWritten(t *testing.T) {
	o := newLone(t, trioState())
	o.hear("b", election.Inquiry{ID: 5, Durable: true})
	if r := sentTo[election.Report](o.take(), "b"); len(r) == 0 || r[0].ID != 5 {
		t.Fatalf("a disk that writes: reports %+v", r)
	}
	o.hang()
	for id := uint64(6); id < 100; id++ {
		o.hear("b", election.Inquiry{ID: id, Durable: true})
	}
	if r := sentTo[election.Report](o.take(), "b"); len(r) != 0 {
		t.Fatalf("a disk that hangs: reports %+v", r)
	}
	o.step(election.Persisted{Write: o.begun}) // the write was slow and was asked for again: the first one counts
	if r := sentTo[election.Report](o.take(), "b"); len(r) != 1 || r[0].ID != 99 {
		t.Errorf("the first write is done: reports %+v", r)
	}
	o.hear("b", election.Inquiry{ID: 100, Durable: true})
	o.step(election.PeerLost{Peer: "b"})
	o.connect("b", election.Report{})
	o.take()
	o.step(election.Persisted{Write: o.begun})
	if r := sentTo[election.Report](o.take(), "b"); slices.ContainsFunc(r, func(r election.Report) bool { return r.ID == 100 }) {
		t.Errorf("the answer to a peer that was gone meanwhile: reports %+v", r)
	}
}
