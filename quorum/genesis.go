package quorum

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Formation makes the first roster. The agent named first proposes a roster. Each named agent
// writes it to its disk as pending and accepts it. Once all have accepted, the proposer commits
// it, and the others adopt it from the proposer's Report. A pending roster binds its agent: if
// two first rosters had common voters, each could elect a leader.
type Formation struct {
	self      election.Voter
	names     []string      // of all voters, the proposer first; the same on every agent
	every     time.Duration // between two proposals
	ledger    *Ledger
	voter     *Voter
	pendingAt uint64 // the generation with which the pending genesis is durable
	accepted  map[election.PeerID]bool
	sendAt    election.Instant // when the proposal is next sent; 0: at once
	waitsFor  []string         // the names of agents that are missing or have not answered
	refusals  map[election.PeerID]Refused
	stuck     Problem // why this agent can't join a formation that it knows of; zero: nothing prevents it
	refused   Problem // about the last proposal that this agent refused; zero: none
	refusedAt election.Instant
}

// NewFormation returns this agent's part in a formation. The names are those of all voters, the proposer first.
func NewFormation(self election.Voter, names []string, every time.Duration, l *Ledger, v *Voter) *Formation {
	return &Formation{self: self, names: names, every: every, ledger: l, voter: v, accepted: map[election.PeerID]bool{}, refusals: map[election.PeerID]Refused{}}
}

func (f *Formation) Done() bool { return f.voter.Roster() != nil }

// Alone commits a roster with this agent as its only voter, unless a pending genesis binds the agent.
func (f *Formation) Alone(now election.Instant, cluster string) {
	if p := f.ledger.State().Pending; p != nil {
		f.stuck = Problem{Why: PendingHere, Agents: []string{proposerOf(p)}}
		return
	}
	f.voter.Adopt(now, &election.Roster{Cluster: cluster, Version: election.Version{Counter: 1},
		Voters: []election.Voter{f.self}}, false)
}

func (f *Formation) Proposer() bool {
	return len(f.names) > 0 && f.names[0] == f.self.Name
}

// Advance does what the proposer has to do; on other agents it does nothing. The function find returns the
// reachable peer with the given name, and the function cluster draws a random name for the new cluster.
func (f *Formation) Advance(now election.Instant, find func(name string) (election.PeerID, bool), cluster func() string) {
	if f.ledger.State().Roster != nil || !f.Proposer() {
		return
	}
	voters, missing := f.voters(find)
	if f.waitsFor = missing; len(missing) > 0 {
		return
	}
	if p := f.ledger.State().Pending; p == nil || p.Proposer == f.self.Peer && !slices.Equal(p.Roster.Voters, voters) {
		f.begin(voters, cluster())
	}
	pending := f.ledger.State().Pending
	if pending.Proposer != f.self.Peer || !f.ledger.Durable(f.pendingAt) {
		return
	}
	f.accepted[f.self.Peer] = true
	for _, name := range f.names {
		if v, _ := pending.Roster.Named(name); !f.accepted[v.Peer] {
			f.waitsFor = append(f.waitsFor, name)
		}
	}
	if len(f.waitsFor) == 0 {
		f.voter.Adopt(now, &pending.Roster, false)
		return
	}
	if now >= f.sendAt {
		f.sendAt = now.Add(f.every)
		f.send(pending, election.GenesisPropose{Genesis: *pending}, func(p election.PeerID) bool { return !f.accepted[p] })
	}
}

func (f *Formation) begin(voters []election.Voter, cluster string) {
	f.accepted = map[election.PeerID]bool{}
	f.sendAt, f.refusals = 0, map[election.PeerID]Refused{}
	f.pendingAt = f.ledger.Change(func(s *election.State) {
		s.Attempt++
		s.Pending = &election.Genesis{Proposer: f.self.Peer, Attempt: s.Attempt, Roster: election.Roster{
			Cluster: cluster, Version: election.Version{Counter: 1}, Voters: voters}}
	})
}

func (f *Formation) voters(find func(string) (election.PeerID, bool)) (voters []election.Voter, missing []string) {
	for _, name := range f.names {
		peer, ok := f.self.Peer, true
		if name != f.self.Name {
			peer, ok = find(name)
		}
		if !ok {
			missing = append(missing, name)
			continue
		}
		voters = append(voters, election.Voter{Name: name, Peer: peer})
	}
	election.SortVoters(voters)
	return voters, missing
}

func (f *Formation) send(g *election.Genesis, m election.Message, to func(election.PeerID) bool) {
	for _, v := range g.Roster.Voters {
		if v.Peer != f.self.Peer && to(v.Peer) {
			f.ledger.Send(election.Envelope{To: v.Peer, Message: m})
		}
	}
}

func (f *Formation) Propose(now election.Instant, from election.PeerID, m election.GenesisPropose) {
	g := m.Genesis
	if reason, detail := f.objection(from, &g); reason != 0 {
		f.refused = Problem{Why: RefusedHere, Agents: []string{proposerOf(&g)}, Voters: voterNames(&g),
			Refused: []Refused{{Reason: reason, Detail: detail}}}
		f.refusedAt = now
		f.ledger.Send(election.Envelope{To: from, Message: election.GenesisRefuse{
			Cluster: g.Roster.Cluster, Attempt: g.Attempt, Reason: reason, Detail: clip(detail)}})
		return
	}
	if !f.ledger.State().Pending.Same(&g) {
		f.pendingAt = f.ledger.Change(func(s *election.State) { s.Pending = &g })
	}
	f.waitsFor, f.stuck, f.refused = nil, Problem{}, Problem{}
	f.ledger.Cancel(func(e election.Envelope) bool { // a repeated proposal needs only one answer
		_, accepts := e.Message.(election.GenesisAccept)
		return accepts && e.To == from
	})
	f.ledger.WhenDurable(f.pendingAt, election.Envelope{To: from,
		Message: election.GenesisAccept{Cluster: g.Roster.Cluster, Attempt: g.Attempt}})
}

// clip shortens a list of names, because 31 long names do not fit into a message.
func clip(names string) string {
	const limit = election.MaxDetail / 2
	if len(names) <= limit {
		return names
	}
	return names[:limit] + "..."
}

func proposerOf(g *election.Genesis) string {
	for _, v := range g.Roster.Voters {
		if v.Peer == g.Proposer {
			return v.Name
		}
	}
	return string(g.Proposer)
}

func voterNames(g *election.Genesis) string {
	return strings.Join(election.Names(g.Roster.Voters, nil), ",")
}

func (f *Formation) objection(from election.PeerID, g *election.Genesis) (reason election.Objection, detail string) {
	held := f.ledger.State().Pending
	reason, detail = f.mismatch(from, g)
	switch {
	case reason != 0, held == nil, held.Same(g):
		return reason, detail
	case held.Proposer == g.Proposer && held.Attempt < g.Attempt:
		return 0, "" // the proposer has given up its earlier attempt, which therefore can't be committed any more
	case held.Proposer != g.Proposer && proposerOf(held) == proposerOf(g):
		return election.GenesisPendingFormer, proposerOf(held)
	}
	return election.GenesisPending, proposerOf(held)
}

// mismatch is what is wrong with the genesis itself, without regard to what is pending here; 0: nothing.
func (f *Formation) mismatch(from election.PeerID, g *election.Genesis) (reason election.Objection, detail string) {
	named := slices.Contains(g.Roster.Voters, f.self)
	own := strings.Join(slices.Sorted(slices.Values(f.names)), ",")
	held := f.ledger.State()
	switch {
	case g.Proposer != from || g.Roster.Version != (election.Version{Counter: 1}) || g.Roster.Joint() || g.Roster.Level() > 0:
		return election.GenesisInvalid, ""
	case held.Roster != nil && held.Roster.Cluster == g.Roster.Cluster:
		return election.GenesisKnown, ""
	case held.Roster != nil:
		return election.GenesisElsewhere, held.Roster.Cluster
	case own != voterNames(g):
		return election.GenesisOtherVoters, strings.Join(f.names, ",")
	case !named:
		return election.GenesisOtherIdentity, ""
	}
	return 0, ""
}

func (f *Formation) Accept(from election.PeerID, m election.GenesisAccept) {
	p := f.ledger.State().Pending
	if p != nil && p.Proposer == f.self.Peer && p.Attempt == m.Attempt && p.Roster.Cluster == m.Cluster {
		f.accepted[from] = true
		delete(f.refusals, from)
	}
}

func (f *Formation) Refuse(from election.PeerID, name string, m election.GenesisRefuse) {
	p := f.ledger.State().Pending
	if p != nil && p.Attempt == m.Attempt && p.Roster.Cluster == m.Cluster {
		f.refusals[from] = Refused{Agent: name, Reason: m.Reason, Detail: m.Detail}
	}
}

// Learn adopts a reported roster, except in two cases. Another agent's proposal, for another cluster, is pending
// here and may be committed. Or this is a first roster with this agent, which has no record of it.
func (f *Formation) Learn(now election.Instant, r *election.Roster) {
	held := f.ledger.State()
	genesis := r.Version == election.Version{Counter: 1}
	switch {
	case held.Roster != nil, held.Pending != nil && held.Pending.Roster.Cluster == r.Cluster:
		f.voter.Adopt(now, r, false)
	case held.Pending != nil && held.Pending.Proposer != f.self.Peer:
		f.stuck = Problem{Why: CommittedElsewhere}
	case genesis && r.Has(f.self.Peer):
		f.stuck = Problem{Why: RecordLost}
	default:
		f.voter.Adopt(now, r, false)
	}
}

// Problem returns why there is no roster yet; zero once there is one.
func (f *Formation) Problem(now election.Instant) Problem {
	const repeats = 10
	switch {
	case f.Done():
		return Problem{}
	case f.refused.Why != 0 && now < f.refusedAt.Add(repeats*f.every):
		return f.refused
	case f.stuck.Why != 0:
		return f.stuck
	case len(f.refusals) > 0:
		p := Problem{Why: RefusedThere}
		for _, peer := range slices.Sorted(maps.Keys(f.refusals)) {
			p.Refused = append(p.Refused, f.refusals[peer])
		}
		return p
	case len(f.waitsFor) > 0:
		return Problem{Why: AwaitsAgents, Agents: f.waitsFor}
	case len(f.names) == 0:
		return Problem{Why: AwaitsRoster}
	case f.ledger.State().Pending != nil:
		return Problem{Why: AwaitsCommit, Agents: f.names[:1]}
	}
	return Problem{Why: AwaitsProposal, Agents: f.names[:1]}
}

// Problem is what prevents the first roster, as facts.
type Problem struct {
	Why     Trouble
	Agents  []string // the agents that this agent waits for, or the agent that proposed
	Voters  string   // the voters in that agent's proposal
	Refused []Refused
}

type Refused struct {
	Agent  string // the agent's name
	Reason election.Objection
	Detail string
}

type Trouble uint8

const (
	PendingHere        Trouble = iota + 1 // another agent's proposal is pending here
	CommittedElsewhere                    // another first roster than the one pending here is committed
	RecordLost                            // a committed roster has this agent as a voter, but this agent has no record of it
	RefusedHere                           // this agent refused a proposal
	RefusedThere                          // another agent refused this agent's proposal
	AwaitsAgents                          // this agent can't reach some agents, or they have not accepted
	AwaitsRoster                          // this agent waits for any member that has the roster
	AwaitsCommit                          // the proposal that is pending here is not committed yet
	AwaitsProposal
)
