package quorum

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/doyen-election/doyen/election"
)

func unused(election.Name) bool { return false }

// TestG2TheTermsOfAForgottenElectionNeverStartAgain: the terms of other elections that are not on record
// do not start again either.
func TestG2TheTermsOfAForgottenElectionNeverStartAgain(t *testing.T) {
	d := newDesk(t, election.State{Peer: "v", Roster: roster3})
	d.grant(at(0), holderA, 5)
	d.voter.Release(at(10), "a", election.Release{Election: "e", Term: 5, Holder: holderA})
	if n := d.voter.Forget(at(20), unused, 8); n != 1 || len(d.ledger.State().Grants) != 0 {
		t.Fatalf("forgot %d, left %v", n, d.ledger.State().Grants)
	}
	if d.voter.Highest() != 5 {
		t.Errorf("the highest term is %d: a roster's floor would lie below it", d.voter.Highest())
	}
	d.ask(at(30), holderA, 5, 2, 0)
	onlyRefusal(t, d.write(at(30)), election.RefusedStaleTerm)
	nacks := d.voter.Renew(at(31), "a", election.Heartbeat{Lineage: holderA.Lineage, Version: roster3.Version,
		Claims: []election.Claim{{Election: "e", Term: 5}}})
	if len(nacks) != 1 || nacks[0].Term != 5 {
		t.Errorf("a late renewal: nacks %v", nacks)
	}
	d.grant(at(40), holderB, 6)
	d.start(at(50))
	d.ask(at(60), holderA, 5, 4, 0)
	onlyRefusal(t, d.write(at(60)), election.RefusedStaleTerm)
}

func TestAPromiseThatRunsOrIsUsedIsNotForgotten(t *testing.T) {
	d := newDesk(t, election.State{Peer: "v", Roster: roster3})
	d.grant(at(0), holderA, 5)
	if n := d.voter.Forget(at(500), unused, 8); n != 0 {
		t.Error("forgot a promise in its lease")
	}
	if n := d.voter.Forget(at(2000), func(election.Name) bool { return true }, 8); n != 0 {
		t.Error("forgot an election in use")
	}
	d.start(at(3000)) // V5: what the former process run promised may still run
	if n := d.voter.Forget(at(3500), unused, 8); n != 0 {
		t.Error("forgot a promise of its former run that may still count")
	}
	if n := d.voter.Forget(at(5000), unused, 8); n != 1 {
		t.Error("kept what has expired")
	}
}

// TestForgettingKeepsOneHolderATerm plays random requests, releases, crashes and forgetting. No
// term is granted to two holders.
func TestForgettingKeepsOneHolderATerm(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := newDesk(t, election.State{Peer: "v", Roster: roster3})
		owners, highest := map[string]election.Holder{}, map[election.Name]election.Term{}
		now := at(0)
		for step := range 120 {
			now = now.Add(testLease * 3 / 10)
			name := election.Name(fmt.Sprint("e", rng.IntN(4)))
			h := []election.Holder{holderA, holderB}[rng.IntN(2)]
			term := highest[name] + election.Term(rng.IntN(3))
			switch rng.IntN(5) {
			case 0:
				d.voter.Release(now, h.Peer, election.Release{Election: name, Term: term, Holder: h})
			case 1:
				d.voter.Forget(now, func(n election.Name) bool { return n == name }, 1+rng.IntN(3))
			case 2:
				if rng.IntN(4) == 0 {
					d.start(now)
				}
			default:
				d.voter.Request(now, h.Peer, election.VoteRequest{Election: name, Term: max(1, term), Holder: h,
					Lease: testLease, Send: election.SendID(step + 1), Roster: *roster3})
			}
			d.voter.Tick(now)
			for _, e := range d.write(now) {
				g, granted := e.Message.(election.VoteGrant)
				if !granted {
					continue
				}
				key := fmt.Sprint(g.Election, g.Term)
				if owner, had := owners[key]; had && owner != g.Holder {
					t.Fatalf("seed %d, step %d: term %d of %s goes to %s and to %s", seed, step, g.Term, g.Election, owner, g.Holder)
				}
				if g.Term < highest[g.Election] {
					t.Fatalf("seed %d, step %d: term %d of %s after %d", seed, step, g.Term, g.Election, highest[g.Election])
				}
				owners[key], highest[g.Election] = g.Holder, g.Term
			}
		}
	}
}
