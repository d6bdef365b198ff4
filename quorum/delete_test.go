package quorum

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

func TestW11ADeletedWordIsDroppedWithItsGrantInOneWrite(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.keep(at(1), holderA, wordOf(5, 1, "x"))
	d.keep(at(2), holderA, wordOf(5, 2, ""))
	d.voter.Release(at(3), "a", election.Release{Election: "e", Term: 5, Holder: holderA, Forget: true})
	d.ledger.Flush()
	p := d.ledger.Next(at(3))
	if p == nil || p.State == nil || p.State.KeepsWords || p.State.Forgotten != 5 || len(p.Words) != 1 || p.Words[0].Word != (election.Word{}) {
		t.Fatalf("written: %+v", p)
	}
	if _, granted := p.State.Grants["e"]; granted {
		t.Error("the grant is kept: a late write of an older word would be taken")
	}
	if after := d.disk.After(p); len(after.Words) != 0 {
		t.Errorf("on disk is %+v", after.Words)
	}
	d.ledger.Persisted(p.Write)
	if atOnce, durable := d.keep(at(4), holderA, wordOf(5, 3, "late")); len(atOnce)+len(durable) != 0 {
		t.Errorf("a late write is acknowledged: %+v %+v", atOnce, durable)
	}
}

func TestW11OnlyTheEmptyWordOfTheTermIsDropped(t *testing.T) {
	for _, row := range []struct {
		name   string
		forget bool
		term   election.Term
		words  []election.Word
	}{
		{"not asked for", true, 4, []election.Word{wordOf(5, 1, "")}},
		{"another term", false, 5, []election.Word{wordOf(5, 1, "")}},
		{"a text", true, 5, []election.Word{wordOf(5, 1, "x")}},
	} {
		d := newDesk(t, state())
		d.grant(at(0), holderA, 5)
		for _, w := range row.words {
			d.keep(at(1), holderA, w)
		}
		d.voter.Release(at(2), "a", election.Release{Election: "e", Term: row.term, Holder: holderA, Forget: row.forget})
		d.ledger.Flush()
		d.write(at(3))
		if got := d.disk.Words["e"]; got != row.words[0] {
			t.Errorf("%s: on disk is %+v", row.name, got)
		}
	}
}

func TestW11AWordIsDeletedOnceAllVotersOfAStableRosterHaveItEmpty(t *testing.T) {
	r := NewRegister(5, 0, roster3)
	for _, v := range []election.PeerID{"a", "b"} {
		vote(r, v, election.Word{})
	}
	rank := r.Replace("")
	for i, v := range []election.PeerID{"a", "b", "v"} {
		if deleted, missing := r.Deleted(); deleted || i == 2 && missing != "v" {
			t.Errorf("after %d voters: deleted %t, missing %q", i, deleted, missing)
		}
		wordAck(r, v, rank)
	}
	if deleted, missing := r.Deleted(); !deleted {
		t.Errorf("all have it; missing %q", missing)
	}
	r.Replace("x")
	if deleted, _ := r.Deleted(); deleted {
		t.Error("deleted while it is written again")
	}
	joint := *roster3
	joint.Next = []election.Voter{{Peer: "a"}}
	r = NewRegister(5, 0, &joint)
	for _, v := range []election.PeerID{"a", "b", "v"} {
		vote(r, v, election.Word{})
	}
	rank = r.Replace("")
	for _, v := range []election.PeerID{"a", "b", "v"} {
		wordAck(r, v, rank)
	}
	if deleted, _ := r.Deleted(); deleted {
		t.Error("deleted during a change of the voters")
	}
}
