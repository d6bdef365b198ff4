package ring

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// hopsPerHeartbeat is how many hop timeouts make a heartbeat. A quarter of a heartbeat is longer than a
// round trip, and lets a token skip a few dead candidates before they are suspected.
const hopsPerHeartbeat = 4

// phase is the state of this agent's current round. What the paper calls a participant is an
// agent that has entered or yielded.
type phase uint8

const (
	idle      phase = iota // this agent has no round
	entered                // its own token is on its way
	yielded                // the token of a better candidate is on its way: this agent waits for the outcome
	nominated              // its own token is back: this agent asks for votes
)

// hop is a token that was sent to the next candidate and is not acknowledged yet.
type hop struct {
	token election.RingElection
	to    election.PeerID
	until election.Instant // when the token skips that candidate, if no Ack has come
}

// passage is the newest token seen from an origin.
type passage struct {
	origin election.PeerID
	joined int64 // distinguishes lineages: an origin without its record numbers its rounds from the start again
	number uint64
}

// Ring is one agent's part in selecting the leader of one election.
type Ring struct {
	election election.Name
	self     election.PeerID
	timeout  time.Duration // of a hop

	phase  phase
	number uint64           // of the newest round that this agent started
	until  election.Instant // when the phase ends, if it is entered or yielded
	ahead  election.Rank    // the candidate to which this agent has yielded; zero: to no particular one
	// holders are the candidates that may have the token for which this agent waits. In the phase yielded,
	// that is the candidate to which this agent has yielded; in the phase entered, all better candidates.
	holders []election.PeerID

	// Invariant: hops and passages have at most one entry for each origin, and only for origins in the newest field.
	hops     []hop
	passages []passage
	// Invariant: announced only rises, by term, peer and lineage. So no announcement is passed on twice.
	announced election.Leadership
}

// New returns an idle Ring. It numbers its rounds from `last` + 1.
func New(name election.Name, self election.PeerID, heartbeat time.Duration, last uint64) *Ring {
	return &Ring{election: name, self: self, timeout: heartbeat / hopsPerHeartbeat, number: last}
}

// Active reports whether this agent has entered or yielded, or is the nominee.
func (r *Ring) Active() bool { return r.phase != idle }

// Stop ends the round: a leader is known, or the bid failed. This agent still passes on others' tokens.
func (r *Ring) Stop() {
	r.phase, r.until = idle, 0
	r.ahead, r.holders = election.Rank{}, nil
	r.dropHop(r.self)
}

// Start starts a round if this agent is idle and able to lead, and does not lead.
func (r *Ring) Start(now election.Instant, f election.Field) election.Verdict {
	var v election.Verdict
	if r.phase == idle && f.Able && f.Leads == nil {
		r.begin(now, f, &v)
	}
	return r.proceed(now, f, v)
}

// Tick does what is due because time has passed or the field has changed.
func (r *Ring) Tick(now election.Instant, f election.Field) election.Verdict {
	return r.proceed(now, f, election.Verdict{})
}

// StandBack makes this agent wait until f.Patience, because a better-ranked agent asks for votes. A nominee does not
// wait: of two nominees, the voters prefer the better one. Call Tick next: it returns when to wake up.
func (r *Ring) StandBack(now election.Instant, f election.Field, better election.Rank) {
	if !f.Able || f.Leads != nil || better.Peer == r.self || !better.Above(f.Self) {
		return
	}
	if r.phase == yielded && !better.Above(r.ahead) {
		return // only a still better agent prolongs the wait
	}
	r.yield(f, better, max(f.Patience, now.Add(r.timeout)))
}

// Nominated returns what a nominee sends before its bid. In Ring that is nothing.
func (r *Ring) Nominated(election.Field, func(election.PeerID) bool) []election.Envelope { return nil }

// Confirmed returns what a nominee sends when it has become the leader: an Elected, to go round the ring.
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

// members returns the ring. This agent is in it even if it can't lead: it still passes on tokens.
func members(f election.Field, self election.PeerID) []election.PeerID {
	ring := make([]election.PeerID, 0, len(f.Ranks)+1)
	for _, rank := range f.Ranks {
		ring = append(ring, rank.Peer)
	}
	ring = append(ring, self)
	slices.Sort(ring)
	return slices.Compact(ring)
}

// after returns the member that follows p in the ring. p need not be a member.
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
