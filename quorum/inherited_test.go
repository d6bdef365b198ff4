package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// player is a voter with a disk that writes at once.
type player struct {
	t      *testing.T
	self   election.PeerID
	ledger *Ledger
	voter  *Voter
}

func newPlayer(t *testing.T, self election.PeerID, r *election.Roster) *player {
	l := NewLedger(election.State{Peer: self, Roster: r, Grants: map[election.Name]election.Grant{}}, time.Second)
	return &player{t: t, self: self, ledger: l, voter: NewVoter(election.Config{Quorum: true, Self: election.Holder{Peer: self}, Drift: testDrift,
		Timing: election.Timing{Lease: 2 * time.Second, Heartbeat: 200 * time.Millisecond}}, l, at(0))}
}

func (p *player) answers(now election.Instant) []election.Envelope {
	var out []election.Envelope
	for range 3 {
		if w := p.ledger.Next(now); w != nil {
			p.ledger.Persisted(w.Write)
		}
		p.voter.Settle(now)
		out = append(out, p.ledger.Take()...)
	}
	return out
}

// votes makes the voter adopt the asker's roster if that is newer (R2), and then vote.
func (p *player) votes(now election.Instant, e election.Name, asker election.PeerID, term election.Term, r *election.Roster) election.VoteGrant {
	p.t.Helper()
	p.voter.Adopt(now, r, false)
	p.voter.Request(now, asker, election.VoteRequest{Election: e, Term: term, Holder: holderAt(asker), Lease: 2 * time.Second,
		Send: 1, Rank: election.Rank{Peer: asker}, Roster: *r})
	return answer[election.VoteGrant](p, now)
}

func (p *player) accepts(now election.Instant, driver election.PeerID, d *Driver) {
	p.t.Helper()
	p.voter.Propose(now, driver, election.RosterPropose{Driver: d.Ballot, Holder: holderAt(driver), Roster: *d.Proposal()})
	d.Accept(now, p.self, answer[election.RosterAccept](p, now))
}

func answer[M election.Message](p *player, now election.Instant) M {
	p.t.Helper()
	var others []election.Message
	for _, o := range p.answers(now) {
		if m, ok := o.Message.(M); ok {
			return m
		}
		others = append(others, o.Message)
	}
	p.t.Fatalf("%s answers %+v, want %T", p.self, others, *new(M))
	return *new(M)
}

func holderAt(p election.PeerID) election.Holder { return election.Holder{Peer: p, Lineage: 1} }

// c changes a, b, c to a, b, d in ballot 5. All accept its mark, but only a has its outcome. b
// continues the change in ballot 9, and wants to go back. Before d learns of that, a asks d for its
// vote. With the request d adopts the outcome of ballot 5 (R2 checks no ballot). So a leads with
// the votes of a and d, two of the new voters. Of the former voters, b and c have promised nothing.
func TestR13TheWayBackWaitsForALeaderOfTheNewVoters(t *testing.T) {
	stable := &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: peersOf("abc")}
	all := map[election.PeerID]*player{}
	for _, v := range peersOf("abcd") {
		all[v.Peer] = newPlayer(t, v.Peer, stable)
	}
	each := func(names string, do func(*player)) {
		for _, v := range peersOf(names) {
			do(all[v.Peer])
		}
	}
	now := at(0)
	each("abc", func(p *player) { p.votes(now, election.RosterElection, "c", 5, stable) })
	change := NewDriver(5, testDrift, stable, peersOf("abd"))
	each("abcd", func(p *player) { p.accepts(now, "c", change) })
	change.Advance(now)
	mark := change.Proposal()
	each("abcd", func(p *player) { p.accepts(now, "c", change) })
	now = change.WaitsUntil()
	change.Advance(now)
	end := change.Proposal()
	all["a"].accepts(now, "c", change) // no other voter does

	now = now.Add(6 * time.Second)
	won := NewLease(9, 2*time.Second, testDrift, mark)
	each("bcd", func(p *player) {
		won.Count(p.self, now, p.votes(now, election.RosterElection, "b", 9, mark).Version)
	})
	back := InheritChange(9, testDrift, mark, won.Won())
	back.GoBack()
	each("bc", func(p *player) { p.accepts(now, "b", back) })

	now = now.Add(2100 * time.Millisecond)
	leads := NewLease(50, 2*time.Second, testDrift, end)
	each("ad", func(p *player) { leads.Count(p.self, now, p.votes(now, "x", "a", 50, end).Version) })
	if leads.End() <= now {
		t.Fatal("a does not lead by the word of the ballot 5: the story shows nothing")
	}
	all["d"].accepts(now, "b", back)
	if !back.Agreed() || back.Advance(leads.End()) {
		t.Fatalf("proposes %+v while a leads till %v", back.Proposal(), leads.End())
	}
	if !back.Advance(back.WaitsUntil()) || back.Proposal().Joint() || back.Proposal().Floor < 50 {
		t.Fatalf("proposes %+v, want the former voters above the term 50", back.Proposal())
	}
}

// A joint roster that is proposed again has the floor from before the change. It may come to a
// voter that already has the outcome.
func TestR5TheFloorOfAVoterNeverFalls(t *testing.T) {
	end := &election.Roster{Cluster: "x", Version: election.Version{Driver: 5, Counter: 2}, Voters: peersOf("abd"), Floor: 7}
	mark := &election.Roster{Cluster: "x", Version: election.Version{Driver: 9}, Voters: peersOf("abc"), Next: peersOf("abd"), Committed: true}
	for name, hears := range map[string]func(*player) election.Term{
		"proposed": func(p *player) election.Term {
			p.voter.Propose(at(0), "b", election.RosterPropose{Driver: 9, Holder: holderAt("b"), Roster: *mark})
			answer[election.RosterAccept](p, at(0))
			p.voter.Propose(at(1), "b", election.RosterPropose{Driver: 9, Holder: holderAt("b"), Roster: *mark}) // again
			return answer[election.RosterAccept](p, at(1)).Highest
		},
		"told": func(p *player) election.Term {
			p.voter.Adopt(at(0), mark, false)
			p.answers(at(0))
			return p.voter.Highest()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, "a", end)
			highest := hears(p)
			if r := p.voter.Roster(); r.Version != mark.Version || r.Floor != 7 || highest < 7 || mark.Floor != 0 {
				t.Fatalf("holds %+v, tells of the term %d; want the newer roster with the floor 7", r, highest)
			}
			p.voter.Request(at(2), "b", election.VoteRequest{Election: "x", Term: 7, Holder: holderAt("b"), Lease: time.Second, Roster: *mark})
			if m := answer[election.VoteRefusal](p, at(2)); m.Reason != election.RefusedFloor || m.Roster == nil {
				t.Fatalf("answers %+v, want a refusal that tells of the floor", m)
			}
		})
	}
}
