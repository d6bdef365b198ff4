package bully

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Config is what one agent's part does not change while it runs.
type Config struct {
	Self election.PeerID
	// Heartbeat is also the answer timeout: how long a round waits for the first
	// Answer of a better-ranked candidate.
	Heartbeat time.Duration
}

// Validate reports what is wrong with the configuration, if anything.
func (c Config) Validate() error {
	switch {
	case c.Self == "":
		return errors.New("validate bully config: no peer ID")
	case c.Heartbeat <= 0:
		return fmt.Errorf("validate bully config: heartbeat %s must be above 0", c.Heartbeat)
	}
	return nil
}

// phase is where this agent stands in the current round.
type phase uint8

const (
	idle      phase = iota // no round here
	asking                 // asked all better ones; none has answered yet
	waiting                // somebody better is at it: wait for the outcome
	nominated              // nobody better: the elector asks for votes
)

// standing is what this agent knows of another one in the current round.
type standing uint8

const (
	asked    standing = iota + 1 // no word yet
	answered                     // said, or was seen, to be at it
	declined                     // can't lead: final for the round
)

type peer struct {
	id       election.PeerID
	standing standing
}

// deferring is a worse-ranked candidate that was told to stand back, with the
// round that it waits in.
type deferring struct {
	id    election.PeerID
	round uint64
	until election.Instant
}

// Bully is one agent's part in the selection of one election's leader. It is
// not safe for concurrent use.
type Bully struct {
	election election.Name
	self     election.PeerID
	timeout  time.Duration

	phase phase
	round uint64           // of the newest round begun here; 0 before the first
	until election.Instant // when asking or waiting ends

	// Invariant: peers and deferring hold only candidates of the newest field,
	// each at most once, so memory is bounded by the field.
	peers     []peer
	deferring []deferring
	// blind: waiting for somebody the field does not hold, so that only time can
	// end the wait.
	blind bool
}

// New returns one agent's part, idle. It fails on an invalid configuration.
func New(name election.Name, c Config) (*Bully, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Bully{election: name, self: c.Self, timeout: c.Heartbeat}, nil
}

// Active reports whether a round is under way or awaited here. A nominee stays
// active until Stop.
func (b *Bully) Active() bool { return b.phase != idle }

// Stop ends the round here: a leader is known, or the attempt failed. Those who
// stand back for this agent are remembered, so that they can be told should it
// become unable to lead.
func (b *Bully) Stop() {
	b.phase, b.until, b.blind = idle, 0, false
	b.peers = nil
}

// Start begins a round, unless one is under way or awaited here, or this agent
// leads or can't lead.
func (b *Bully) Start(now election.Instant, f election.Field) election.Verdict {
	var v election.Verdict
	if b.phase == idle && f.Able && f.Leads == nil {
		b.begin(now, f, &v)
	}
	return b.proceed(now, f, v)
}

// Tick takes note that time passed or that the field changed.
func (b *Bully) Tick(now election.Instant, f election.Field) election.Verdict {
	return b.proceed(now, f, election.Verdict{})
}

// StandBack waits for the outcome of the round of a better-ranked agent that
// was heard of by other means, until f.Patience. Each agent prolongs a wait at
// most once. A nominee does not stand back: its votes are already asked for,
// and the voters prefer the better rank. Call Tick next for the wake-up.
func (b *Bully) StandBack(now election.Instant, f election.Field, better election.Rank) {
	if f.Able && f.Leads == nil && better.Peer != b.self && better.Above(f.Self) {
		b.waitFor(now, f, better.Peer)
	}
}

// Confirmed returns the announcements of a nominee that the voters confirmed: a
// Coordinator to every other candidate.
func (b *Bully) Confirmed(f election.Field, l election.Leadership) []election.Envelope {
	var sends []election.Envelope
	for _, r := range f.Ranks {
		if r.Peer != b.self {
			sends = append(sends, b.coordinator(r.Peer, l))
		}
	}
	return sends
}

// Nomination returns the unasked Answers of a new nominee, which tell
// worse-ranked candidates that it waits for its votes. Those who stand back for
// it already are left out, and those that skip names, if it is not nil: voters
// hear of the nominee by its Vote Request.
func (b *Bully) Nomination(f election.Field, skip func(election.PeerID) bool) []election.Envelope {
	if b.phase != nominated {
		return nil
	}
	var sends []election.Envelope
	for _, r := range f.Ranks {
		if !f.Self.Above(r) || b.defers(r.Peer) || skip != nil && skip(r.Peer) {
			continue
		}
		b.noteDeferring(r.Peer, 0, f.Patience)
		sends = append(sends, election.Envelope{To: r.Peer, Message: election.BullyAnswer{Election: b.election}})
	}
	return sends
}

func (b *Bully) coordinator(to election.PeerID, l election.Leadership) election.Envelope {
	return election.Envelope{To: to, Message: election.BullyCoordinator{Election: b.election, Term: l.Term, Leader: l.Leader}}
}

// find returns the entry of that peer in this round, nil if it has none.
func (b *Bully) find(id election.PeerID) *peer {
	i := slices.IndexFunc(b.peers, func(p peer) bool { return p.id == id })
	if i < 0 {
		return nil
	}
	return &b.peers[i]
}

// any reports whether some peer is of that standing in this round.
func (b *Bully) any(s standing) bool {
	return slices.ContainsFunc(b.peers, func(p peer) bool { return p.standing == s })
}

// holds reports whether the peer is a candidate of the field.
func holds(f election.Field, id election.PeerID) bool {
	return slices.ContainsFunc(f.Ranks, func(r election.Rank) bool { return r.Peer == id })
}
