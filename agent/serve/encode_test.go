package serve

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
)

// anyPicture draws a picture of what may be, names that no agent can have
// included.
func anyPicture(rng *rand.Rand) *Picture {
	p := &Picture{Status: &elector.Status{}, View: &membership.View{}, Names: map[election.PeerID]string{}}
	strings := []string{"a", "payments", "12D3KooWB7gL", `"`, `\`, "<b>&", "ü\u2028", "\x00\n\x7f", "\xff", ""}
	text := func() string { return strings[rng.IntN(len(strings))] }
	var peers []election.PeerID
	for i := range rng.IntN(5) {
		id := election.PeerID(fmt.Sprintf("%d%s", i, text()))
		m := membership.Member{Member: election.Member{Peer: id}}
		switch rng.IntN(4) {
		case 0:
			m.PeerAddr = netip.MustParseAddrPort("10.0.0.1:7947")
		case 1:
			m.PeerAddr = netip.MustParseAddrPort("[fe80::1%eth0]:1")
		case 2:
			m.PeerAddr = netip.MustParseAddrPort("[::ffff:1.2.3.4]:65535")
		}
		p.View.Members, peers = append(p.View.Members, m), append(peers, id)
		if rng.IntN(3) > 0 {
			p.Names[id] = text()
		}
	}
	peers = append(peers, "", "unknown<")
	any := func() election.PeerID { return peers[rng.IntN(len(peers))] }
	p.Status.Self = election.Holder{Peer: any(), Lineage: 1}
	p.Status.Quorum.Enabled = rng.IntN(4) > 0
	states := []elector.State{elector.Idle, elector.Following, elector.Electing, elector.Leading, elector.NoQuorum}
	for i := range rng.IntN(4) {
		c := elector.ContestStatus{
			Election: election.Name(fmt.Sprintf("%d%s", i, text())), State: states[rng.IntN(len(states))],
			Leader: election.Holder{Peer: any(), Lineage: election.LineageID(rng.IntN(2))}, Term: election.Term(rng.Uint64() >> rng.IntN(64)),
			ValidUntil: election.Instant(rng.Int64N(int64(4 * time.Second))), HeardAt: election.Instant(rng.Int64N(int64(4 * time.Second))),
		}
		for range rng.IntN(4) {
			c.Candidates = append(c.Candidates, any())
		}
		p.Status.Contests = append(p.Status.Contests, &c)
	}
	return p
}

// What is written out by hand is what the library makes of the same answer.
func TestAnswersAreTheLibrarysByteForByte(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		p, now := anyPicture(rng), election.Instant(rng.Int64N(int64(4*time.Second)))
		index := func(name string) uint64 { return uint64(len(name)) }
		want, err := json.Marshal(api.Elections{Elections: p.Elections(now, index)})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.appendElections(nil, now, index)); got != string(want) {
			t.Fatalf("seed %d\n got %s\nwant %s", seed, got, want)
		}
	}
}

func TestAnElectionIsAnsweredWithoutAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := anyPicture(rng)
	for len(p.View.Members) < 4 || len(p.Status.Contests) < 3 {
		p = anyPicture(rng)
	}
	for i := range p.View.Members {
		p.Names[p.View.Members[i].Peer] = "agent"
		p.View.Members[i].PeerAddr = netip.MustParseAddrPort("10.0.0.1:7947")
	}
	c, buffer := p.Status.Contests[0], make([]byte, 0, 4096)
	c.Election, c.Leader, c.State, c.ValidUntil = "payments", election.Holder{Peer: p.View.Members[1].Peer}, elector.Following, election.Never
	c.Candidates = []election.PeerID{p.View.Members[0].Peer, p.View.Members[1].Peer}
	if n := testing.AllocsPerRun(100, func() { p.appendElection(buffer, c, 1, 7) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
