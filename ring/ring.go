package ring

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
	// Heartbeat divided by HopsPerHeartbeat is the hop timeout: how long the
	// next candidate may take to acknowledge a token before it is skipped.
	Heartbeat time.Duration
}

// HopsPerHeartbeat is how many hop timeouts make a heartbeat. A quarter of a
// heartbeat is above the round trip wherever the heartbeat fits the network, and
// lets a token skip a few dead candidates in the time one suspicion takes.
const HopsPerHeartbeat = 4

// Validate reports what is wrong with the configuration, if anything.
func (c Config) Validate() error {
	switch {
	case c.Self == "":
		return errors.New("validate ring config: no peer ID")
	case c.Heartbeat < HopsPerHeartbeat:
		return fmt.Errorf("validate ring config: heartbeat %s must be at least %d ns", c.Heartbeat, HopsPerHeartbeat)
	}
	return nil
}

// phase is where this agent stands in the current round. A participant, in the
// paper's words, is one that has entered or yielded.
type phase uint8

const (
	idle      phase = iota // no round here
	entered                // its own token is out
	yielded                // a better candidate is at it: wait for the outcome
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
	joined int64 // a restarted origin counts its rounds anew
	number uint64
}

// Ring is one agent's part in the selection of one election's leader. It is not
// safe for concurrent use.
type Ring struct {
	election election.Name
	self     election.PeerID
	timeout  time.Duration // of a hop

	phase  phase
	number uint64           // of the newest round begun here; 0 before the first
	until  election.Instant // when having entered or yielded ends
	// ahead is the candidate yielded to; zero: nobody in particular.
	ahead election.Rank
	// at are the candidates that may hold the token that matters here: the one
	// yielded to, or all better ones once the own token is out.
	at []election.PeerID

	// Invariant: at, hops and passages hold at most one entry an origin, and only
	// origins in the newest field, so memory is bounded by the field.
	hops     []hop
	passages []passage
	// Invariant: the newest announcement passed on only rises, in the order of
	// term, then peer and boot, so none is passed on twice.
	announced election.Leadership
}

// New returns one agent's part, idle. It fails on an invalid configuration.
func New(name election.Name, c Config) (*Ring, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Ring{election: name, self: c.Self, timeout: c.Heartbeat / HopsPerHeartbeat}, nil
}

// Active reports whether a round is under way or awaited here. A nominee stays
// active until Stop.
func (r *Ring) Active() bool { return r.phase != idle }

// Stop ends the round here: a leader is known, or the attempt failed. Tokens of
// others that wait for an acknowledgement still go on.
func (r *Ring) Stop() {
	r.phase, r.until = idle, 0
	r.ahead, r.at = election.Rank{}, nil
	r.dropHop(r.self)
}

// Start sends an own token, unless a round is under way or awaited here, or this
// agent leads or can't lead.
func (r *Ring) Start(now election.Instant, f election.Field) election.Verdict {
	var v election.Verdict
	if r.phase == idle && f.Able && f.Leads == nil {
		r.begin(now, f, &v)
	}
	return r.proceed(now, f, v)
}

// Tick takes note that time passed or that the field changed.
func (r *Ring) Tick(now election.Instant, f election.Field) election.Verdict {
	return r.proceed(now, f, election.Verdict{})
}

// StandBack waits for the outcome of the round of a better-ranked agent that
// was heard of by other means, until f.Patience. A nominee does not stand back:
// its votes are already asked for, and the voters prefer the better rank. Call
// Tick next for the wake-up.
func (r *Ring) StandBack(now election.Instant, f election.Field, better election.Rank) {
	if !f.Able || f.Leads != nil || better.Peer == r.self || !better.Above(f.Self) {
		return
	}
	if r.phase == yielded && !better.Above(r.ahead) {
		return // so that nobody prolongs a wait twice
	}
	r.yield(f, better, max(f.Patience, now.Add(r.timeout)))
}

// Confirmed returns the announcement of a nominee that the voters confirmed: an
// Elected that goes round the ring.
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

// members returns the peers of the ring in its order, self always included: an
// agent that can't lead still passes tokens on.
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

// contains reports whether p is a member of the ring.
func contains(ring []election.PeerID, p election.PeerID) bool {
	_, found := slices.BinarySearch(ring, p)
	return found
}
