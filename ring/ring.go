package ring

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// hopsPerHeartbeat is how many hop timeouts make a heartbeat. A quarter of a heartbeat is
// longer than a round trip, and lets a token skip a few dead candidates within a suspicion.
const hopsPerHeartbeat = 4

// phase is how far the current round of this agent has come. A participant, in the
// paper's words, is one that has entered or yielded.
type phase uint8

const (
	idle      phase = iota // no round
	entered                // its own token is under way
	yielded                // a better candidate's token is: wait for the outcome
	nominated              // its own token came home: the elector asks for votes
)

// hop is a token on its way to the next candidate, not yet acknowledged.
type hop struct {
	token election.RingElection
	to    election.PeerID
	until election.Instant // then skip to
}

// passage is the newest token seen of one run of an origin.
type passage struct {
	origin election.PeerID
	joined int64 // a restarted origin counts its rounds from 1 again
	number uint64
}

// Ring is one agent's part in selecting the leader of one election.
type Ring struct {
	election election.Name
	self     election.PeerID
	timeout  time.Duration // of a hop

	phase  phase
	number uint64           // of the newest round started here; 0: none yet
	until  election.Instant // when the phase ends, if it is entered or yielded
	ahead  election.Rank    // the candidate yielded to; zero: no particular one
	// holders are the candidates that may hold the token this agent waits for: the
	// one yielded to, or all better ones once its own token is under way.
	holders []election.PeerID

	// Invariant: hops and passages hold at most one entry for each origin, and only
	// origins in the newest field.
	hops     []hop
	passages []passage
	// Invariant: it only rises, by term, peer and lineage, so none is passed on twice.
	announced election.Leadership
}

// New returns an idle Ring, which numbers its rounds from last + 1.
func New(name election.Name, self election.PeerID, heartbeat time.Duration, last uint64) *Ring {
	return &Ring{election: name, self: self, timeout: heartbeat / hopsPerHeartbeat, number: last}
}

// Active reports whether this agent has entered, has yielded or is the nominee.
func (r *Ring) Active() bool { return r.phase != idle }

// Stop ends the round: a leader is known, or the bid failed. Tokens of others still go on.
func (r *Ring) Stop() {
	r.phase, r.until = idle, 0
	r.ahead, r.holders = election.Rank{}, nil
	r.dropHop(r.self)
}

// Start starts a round if this agent is idle, able to lead and does not lead.
func (r *Ring) Start(now election.Instant, f election.Field) election.Verdict {
	var v election.Verdict
	if r.phase == idle && f.Able && f.Leads == nil {
		r.begin(now, f, &v)
	}
	return r.proceed(now, f, v)
}

// Tick does what follows from a later time or another field.
func (r *Ring) Tick(now election.Instant, f election.Field) election.Verdict {
	return r.proceed(now, f, election.Verdict{})
}

// StandBack has this agent wait until f.Patience, because a better-ranked agent asks for votes. A
// nominee goes on instead: the voters prefer the better of the two. Call Tick next, which returns
// when to wake up.
func (r *Ring) StandBack(now election.Instant, f election.Field, better election.Rank) {
	if !f.Able || f.Leads != nil || better.Peer == r.self || !better.Above(f.Self) {
		return
	}
	if r.phase == yielded && !better.Above(r.ahead) {
		return // no agent prolongs a wait twice
	}
	r.yield(f, better, max(f.Patience, now.Add(r.timeout)))
}

// Nominated returns what a nominee sends before its bid: nothing.
func (r *Ring) Nominated(election.Field, func(election.PeerID) bool) []election.Envelope { return nil }

// Confirmed returns what a nominee sends once it leads: an Elected for the ring.
func (r *Ring) Confirmed(f election.Field, l election.Leadership) []election.Envelope {
	r.noteAnnounced(l)
	next := after(members(f, r.self), r.self)
	if next == r.self {
		return nil
	}
	return []election.Envelope{r.elected(next, l)}
}

func (r *Ring) elected(to election.PeerID, l election.Leadership) election.Envelope {
	return election.Envelope{To: to, Message: election.RingElected{Election: r.election, Term: l.Term, Leader: l.Leader}}
}

// members returns the ring, self included: an agent that can't lead still passes tokens on.
func members(f election.Field, self election.PeerID) []election.PeerID {
	ring := make([]election.PeerID, 0, len(f.Ranks)+1)
	for _, rank := range f.Ranks {
		ring = append(ring, rank.Peer)
	}
	ring = append(ring, self)
	slices.Sort(ring)
	return slices.Compact(ring)
}

// after returns the member that follows p, which need not be one itself.
func after(ring []election.PeerID, p election.PeerID) election.PeerID {
	i, found := slices.BinarySearch(ring, p)
	if found {
		i++
	}
	return ring[i%len(ring)]
}

func contains(ring []election.PeerID, p election.PeerID) bool {
	_, found := slices.BinarySearch(ring, p)
	return found
}
