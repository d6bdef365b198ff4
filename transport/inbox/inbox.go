// Package inbox holds what peers sent and nobody has taken yet, and decides what is
// taken first when more arrives than is taken.
//
// First comes the newest heartbeat of each peer, and its newest answer to a heartbeat, so
// that a leader keeps its leases however many others ask for something. Then come votes,
// and what votes rest on: rosters and reports. Messages of selection, and questions, come
// last: while nobody leads, a hundred agents send them in numbers that grow with the
// square. Among votes, and among what comes last, a peer's messages keep their order.
//
// What a newer message makes worthless is not taken: an older heartbeat, an older request
// for the same vote, or a request for a vote that its sender has released since. What
// waits is bounded, and a peer that sends much does not crowd out the others: its newest
// messages are refused. To the protocol that is a lossy network.
//
// It knows no time and starts no goroutine; its owner locks it.
package inbox

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

const (
	// PerPeer bounds the messages of one peer that wait.
	PerPeer = 256
	// maxAsked bounds for how many elections a peer's last requested term is kept.
	maxAsked = 2048
	// inRow is how many messages are taken in a row while less urgent ones wait.
	inRow = 16
)

// Item is what was put: a message of a peer, or a note. A note keeps its place among that
// peer's messages.
type Item struct {
	Peer    election.PeerID
	Message election.Message // nil: a note
	Note    any
}

// Inbox holds what waits. The zero value is an empty inbox.
//
// Invariants: at most PerPeer messages of each peer wait in queue and votes, and one of
// each urgent kind in urgent; what is in urgent and votes was put before the peer's first
// note in queue; a peer is in peers while something of it waits, or while asked is set.
type Inbox struct {
	queue    []*entry
	votes    []*entry
	urgent   []*entry
	peers    map[election.PeerID]*peer
	row      int // urgent messages taken since the last other one
	votesRow int // votes taken since the last message of queue
	vain     uint64
}

// entry is an item that waits. It is changed in place when a newer message
// replaces it, and left empty when it is not to be taken any more.
type entry struct {
	Item
	gone  bool
	first bool // the request is the first of its term
}

// peer is what waits from one peer.
type peer struct {
	messages int // in the queue and among the votes
	notes    int
	beat     *entry
	ack      *entry
	requests map[election.Name]*entry        // waiting Vote Requests
	told     *entry                          // in which elections it is a candidate
	asked    map[election.Name]election.Term // term of its last Vote Request
}

// Put adds a message, and reports whether there was room.
func (b *Inbox) Put(from election.PeerID, m election.Message) bool {
	p := b.peer(from)
	defer b.tidy(from, p)
	if b.outdates(p, m) {
		return true
	}
	e := &entry{Item: Item{Peer: from, Message: m}}
	if slot := p.urgent(m); slot != nil && p.notes == 0 {
		*slot = e
		b.urgent = append(b.urgent, e)
		return true
	}
	if p.messages >= PerPeer {
		return false
	}
	p.messages++
	if p.notes == 0 && !isWord(m) {
		b.votes = append(b.votes, e)
	} else {
		b.queue = append(b.queue, e)
	}
	switch m := m.(type) {
	case election.VoteRequest:
		if p.requests == nil {
			p.requests = map[election.Name]*entry{}
		}
		p.requests[m.Election] = e
		e.first = p.asks(m)
	case election.Candidacies:
		p.told = e
	}
	return true
}

// outdates has a message take the place of an older one that it makes worthless, and
// reports whether it is done with the message. What was put before a note belongs to another
// connection, and is left alone.
func (b *Inbox) outdates(p *peer, m election.Message) bool {
	var older *entry
	switch m := m.(type) {
	case election.Heartbeat, election.HeartbeatAck:
		older = *p.urgent(m)
	case election.VoteRequest:
		if older = p.requests[m.Election]; older != nil {
			first := p.asks(m)
			older.first = first || older.first && older.Message.(election.VoteRequest).Term == m.Term
		}
	case election.Candidacies:
		older = p.told
	case election.Release:
		return b.cancel(p, m)
	}
	if older == nil {
		return false
	}
	older.Message = m
	b.vain++
	return true
}

// cancel drops a waiting Vote Request whose sender releases the term, and reports whether the
// Release can be dropped too: then the voter has not seen the term.
func (b *Inbox) cancel(p *peer, m election.Release) bool {
	e := p.requests[m.Election]
	if e == nil {
		return false
	}
	r := e.Message.(election.VoteRequest)
	if r.Holder != m.Holder || r.Term > m.Term {
		return false
	}
	e.gone = true
	b.vain++
	p.messages--
	delete(p.requests, m.Election)
	return e.first && r.Term == m.Term && m.Target == "" && m.StandDown == 0
}

// asks records a request, and returns whether it is the first of its term on this
// connection. An earlier connection may have brought one: then cancel drops the Release
// wrongly, and the promise only ends with its lease.
func (p *peer) asks(m election.VoteRequest) bool {
	if p.asked == nil {
		p.asked = map[election.Name]election.Term{}
	}
	last, known := p.asked[m.Election]
	if !known && len(p.asked) >= maxAsked {
		return false
	}
	p.asked[m.Election] = max(last, m.Term)
	return m.Term > last
}

// urgent returns where the newest message of that kind is kept; nil for a kind that is not
// urgent.
func (p *peer) urgent(m election.Message) **entry {
	switch m.(type) {
	case election.Heartbeat:
		return &p.beat
	case election.HeartbeatAck:
		return &p.ack
	}
	return nil
}

// isWord reports whether a message is one of selection or a question: these come last.
func isWord(m election.Message) bool {
	switch m.(type) {
	case election.BullyElection, election.BullyAnswer, election.BullyDecline, election.BullyCoordinator,
		election.RingElection, election.RingAck, election.RingElected,
		election.Inquiry, election.CandidaciesAck, election.Call, election.CallAnswer:
		return true
	}
	return false
}

// Note adds what is not a message. It is never refused, and is taken before every message of
// the peer that is put after it. When it is taken, the urgent messages and votes that were put
// before it and still wait are dropped.
func (b *Inbox) Note(from election.PeerID, note any) {
	p := b.peer(from)
	p.notes++
	p.beat, p.ack, p.requests, p.told, p.asked = nil, nil, nil, nil, nil // later messages don't replace earlier ones
	b.queue = append(b.queue, &entry{Item: Item{Peer: from, Note: note}})
}

// Unsay removes the peer's first note for which fits returns true, and everything of the
// peer that was put after it. It reports whether there was such a note.
func (b *Inbox) Unsay(from election.PeerID, fits func(note any) bool) bool {
	at := slices.IndexFunc(b.queue, func(e *entry) bool { return e.Peer == from && e.Message == nil && fits(e.Note) })
	if at < 0 {
		return false
	}
	p := b.peer(from)
	rest := slices.DeleteFunc(b.queue[at:], func(e *entry) bool {
		if e.Peer == from {
			p.leave(e)
		}
		return e.Peer == from
	})
	b.queue = b.queue[:at+len(rest)]
	b.tidy(from, p)
	return true
}

// Take returns what is to be handled next; false if nothing waits.
func (b *Inbox) Take() (Item, bool) {
	for {
		var e *entry
		switch {
		case len(b.urgent) > 0 && (b.row < inRow || len(b.queue)+len(b.votes) == 0):
			return b.takeUrgent(), true
		case len(b.votes) > 0 && (b.votesRow < inRow || len(b.queue) == 0):
			e = b.shift(&b.votes)
			b.votesRow++
		case len(b.queue) > 0:
			e = b.shift(&b.queue)
			b.votesRow = 0
		default:
			return Item{}, false
		}
		if e.gone {
			continue
		}
		b.row = 0
		p := b.peer(e.Peer)
		p.leave(e)
		if e.Message == nil {
			b.drop(e.Peer, p)
		}
		b.tidy(e.Peer, p)
		return e.Item, true
	}
}

func (b *Inbox) takeUrgent() Item {
	e := b.shift(&b.urgent)
	p := b.peer(e.Peer)
	if slot := p.urgent(e.Message); *slot == e {
		*slot = nil
	}
	b.tidy(e.Peer, p)
	b.row++
	return e.Item
}

// drop forgets the peer's urgent messages and votes from before the note that is taken.
func (b *Inbox) drop(from election.PeerID, p *peer) {
	b.urgent = slices.DeleteFunc(b.urgent, func(u *entry) bool { return u.Peer == from })
	b.votes = slices.DeleteFunc(b.votes, func(v *entry) bool {
		if v.Peer == from {
			p.leave(v)
		}
		return v.Peer == from
	})
}

// Waiting is how many entries are kept.
func (b *Inbox) Waiting() int { return len(b.queue) + len(b.votes) + len(b.urgent) }

// Outdated counts the messages that a newer one made worthless before they were taken.
func (b *Inbox) Outdated() uint64 { return b.vain }

// leave records that an entry of queue or votes does not wait any more.
func (p *peer) leave(e *entry) {
	switch m := e.Message.(type) {
	case nil:
		p.notes--
		return
	case election.VoteRequest:
		if p.requests[m.Election] == e {
			delete(p.requests, m.Election)
		}
	case election.Candidacies:
		if p.told == e {
			p.told = nil
		}
	}
	if !e.gone {
		p.messages--
	}
}

func (b *Inbox) shift(list *[]*entry) *entry {
	e := (*list)[0]
	(*list)[0] = nil
	*list = (*list)[1:]
	return e
}

func (b *Inbox) peer(id election.PeerID) *peer {
	p := b.peers[id]
	if p == nil {
		p = &peer{}
		if b.peers == nil {
			b.peers = map[election.PeerID]*peer{}
		}
		b.peers[id] = p
	}
	return p
}

// tidy forgets a peer of which nothing waits.
func (b *Inbox) tidy(id election.PeerID, p *peer) {
	if p.messages == 0 && p.notes == 0 && p.beat == nil && p.ack == nil && p.asked == nil {
		delete(b.peers, id)
	}
}
