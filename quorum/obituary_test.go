package quorum

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

var deadA = election.Obituary{Peer: "a", Lineage: 1}

func TestK5AnObituaryEndsTheGrantAtOnceAndForGood(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	d.voter.Bury(at(10), deadA)
	if d.voter.PromiseEnd("e") != 0 {
		t.Fatal("the promise runs on")
	}
	d.write(at(10)) // nothing else has to be written
	if !d.disk.Grants["e"].Released {
		t.Fatalf("on disk is %+v", d.disk.Grants["e"])
	}
	if nacks := d.voter.Renew(at(11), "a", renewal(holderA, 3)); len(nacks) != 1 {
		t.Fatal("a late heartbeat of the dead is honoured")
	}
	d.ask(at(12), holderA, 3, 5, 0)
	onlyRefusal(t, d.write(at(12)), election.RefusedStaleTerm)
	d.grant(at(13), holderB, 4)
}

func TestK5AVoteThatIsBeingWrittenEndsOnceItIsDurable(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 3, 1, 0)
	w := d.ledger.Next(at(0))
	d.ask(at(1), holderA, 4, 2, 0) // waits, and must not be granted to the dead
	d.voter.Bury(at(2), deadA)
	if g := d.ledger.State().Grants["e"]; g.Released {
		t.Fatal("changed while it was written (V1)")
	}
	d.ledger.Persisted(w.Write)
	d.disk = w.State
	d.voter.Settle(at(3))
	d.write(at(3))
	if g := d.disk.Grants["e"]; !g.Released || g.Term != 3 || g.Holder != holderA || d.voter.PromiseEnd("e") != 0 {
		t.Fatalf("on disk is %+v", g)
	}
}

func TestK5AnotherLineageKeepsItsGrant(t *testing.T) {
	d := newDesk(t, state())
	next := election.Holder{Peer: "a", Lineage: 2}
	d.grant(at(0), next, 3)
	d.voter.Bury(at(10), deadA)
	d.write(at(10))
	if g := d.disk.Grants["e"]; g.Released || d.voter.PromiseEnd("e") != at(0).Add(testLease) {
		t.Fatalf("on disk is %+v", g)
	}
}

// Whoever waits for the end of a promise to the dead need not wait longer.
func TestK5ARequestThatWaitedForTheDeadIsAnswered(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	d.ask(at(10), holderB, 4, 1, 0)
	d.voter.Bury(at(20), deadA)
	if g := onlyGrant(t, d.write(at(20))); g.Holder != holderB {
		t.Fatalf("granted %+v", g)
	}
}
