package bully

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// phase is the state of this agent's current round.
type phase uint8

const (
	idle      phase = iota // this agent has no round
	asking                 // it has asked all better candidates, and none has answered yet
	waiting                // a better candidate has a round: this agent waits for its outcome
	nominated              // no better candidate can lead: this agent asks for votes
)

// reply is what a better candidate has replied in the current round.
type reply uint8

const (
	none     reply = iota + 1
	answered       // the candidate is alive, and has its own round
	declined       // the candidate can't lead; it is not asked again in this round
)

type peer struct {
	id    election.PeerID
	reply reply
}

// deferring is a worse candidate that waits because this agent has sent it an Answer with that round.
type deferring struct {
	id    election.PeerID
	round uint64
	until election.Instant
}

// Bully is one agent's part in selecting the leader of one election.
type Bully struct {
	election election.Name
	self     election.PeerID
	timeout  time.Duration

	phase phase
	round uint64           // of the newest round that this agent started
	until election.Instant // when the phase ends, if it is asking or waiting

	// Invariant: peers and deferring have only candidates of the newest field, each at most once.
	peers     []peer
	deferring []deferring
	blind     bool // this agent waits for an agent that is not in the field, so only time ends the wait
}

// New returns an idle Bully. The timeout, which must be above 0, is how long it waits for the first Answer.
// It numbers its rounds from `last` + 1.
func New(name election.Name, self election.PeerID, timeout time.Duration, last uint64) *Bully {
	return &Bully{election: name, self: self, timeout: timeout, round: last}
}

// Active reports whether this agent asks, waits or is the nominee.
func (b *Bully) Active() bool { return b.phase != idle }

// Stop ends the round: a leader is known, or the bid failed. It keeps the list of candidates
// that wait for this agent, so that they get a Decline if this agent becomes unable to lead.
func (b *Bully) Stop() {
	b.phase, b.until, b.blind = idle, 0, false
	b.peers = nil
}

// Start starts a round if this agent is idle and able to lead, and does not lead.
func (b *Bully) Start(now election.Instant, f election.Field) election.Verdict {
	var v election.Verdict
	if b.phase == idle && f.Able && f.Leads == nil {
		b.begin(now, f, &v)
	}
	return b.proceed(now, f, v)
}

// Tick does what is due because time has passed or the field has changed.
func (b *Bully) Tick(now election.Instant, f election.Field) election.Verdict {
	return b.proceed(now, f, election.Verdict{})
}

// StandBack makes this agent wait until f.Patience, because a better-ranked agent asks for
// votes. Each better agent prolongs the wait at most once. A nominee does not wait: of two
// nominees, the voters prefer the better one. Call Tick next: it returns when to wake up.
func (b *Bully) StandBack(now election.Instant, f election.Field, better election.Rank) {
	if f.Able && f.Leads == nil && better.Peer != b.self && better.Above(f.Self) {
		b.waitFor(now, f, better.Peer)
	}
}

// Confirmed returns what a nominee sends when it has become the leader: a Coordinator to every other candidate.
func (b *Bully) Confirmed(f election.Field, l election.Leadership) []election.Envelope {
	var sends []election.Envelope
	for _, r := range f.Ranks {
		if r.Peer != b.self {
			sends = append(sends, b.coordinator(r.Peer, l))
		}
	}
	return sends
}

// Nominated returns what a nominee sends before its bid: an Answer with round 0 to each worse candidate. It
// omits candidates that wait for it already, and voters, because these receive the Vote Request.
func (b *Bully) Nominated(f election.Field, votes func(election.PeerID) bool) []election.Envelope {
	if b.phase != nominated {
		return nil
	}
	var sends []election.Envelope
	for _, r := range f.Ranks {
		if f.Self.Above(r) && !b.defers(r.Peer) && !votes(r.Peer) {
			b.remember(r.Peer, 0, f.Patience)
			sends = append(sends, election.Envelope{To: r.Peer, Message: election.BullyAnswer{Election: b.election}})
		}
	}
	return sends
}

func (b *Bully) coordinator(to election.PeerID, l election.Leadership) election.Envelope {
	return election.Envelope{To: to, Message: election.BullyCoordinator{Election: b.election, Term: l.Term, Leader: l.Leader}}
}

func (b *Bully) find(id election.PeerID) *peer {
	i := slices.IndexFunc(b.peers, func(p peer) bool { return p.id == id })
	if i < 0 {
		return nil
	}
	return &b.peers[i]
}

func (b *Bully) any(r reply) bool {
	return slices.ContainsFunc(b.peers, func(p peer) bool { return p.reply == r })
}

func holds(f election.Field, id election.PeerID) bool {
	return slices.ContainsFunc(f.Ranks, func(r election.Rank) bool { return r.Peer == id })
}
