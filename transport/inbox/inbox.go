// Package inbox holds the messages of peers that nobody has taken yet. If more arrive than are taken, it
// decides which are taken first.
//
// First come each peer's newest heartbeat, and its newest answer to a heartbeat, so that a leader keeps its
// leases however many messages others send. Then come votes, and what votes depend on: rosters and reports.
// Messages of selection, and questions, come last: while nobody leads, their number grows with the square of
// the number of agents. The votes of one peer keep their order, and so do its messages that come last.
//
// A message that a newer one made worthless is not taken: an older heartbeat, an older request for the
// same vote, or a request for a vote that its sender has released since. The number of waiting messages
// is bounded. If a peer sends too many, its newest are refused, so that it does not crowd out the others.
// To the protocol this looks like a lossy network.
//
// It reads no clock and starts no goroutine. It is not safe for concurrent use.
package inbox

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

const (
	// PerPeer bounds the messages of one peer that wait.
	PerPeer = 256
	// inRow is how many messages are taken in a row while less urgent ones wait.
	inRow = 16
)

// Item is what was put: a message of a peer, or a note about the peer. A note keeps its place among that
// peer's messages.
type Item struct {
	Peer    election.PeerID
	Message election.Message // nil if the item is a note
	Note    any
}

// Inbox holds the waiting items. The zero value is an empty inbox.
//
// Invariants: of each peer, at most PerPeer messages wait, and one of each urgent kind. Entries in the lists
// urgent and votes were put before the peer's first note in the queue. A peer is in the map peers while
// something of it waits.
type Inbox struct {
	queue    []*entry
	votes    []*entry
	urgent   []*entry
	peers    map[election.PeerID]*peer
	row      int    // urgent messages taken since the last one that was not urgent
	votesRow int    // votes taken since the last entry of the queue
	vain     uint64 // messages that were never taken because of a newer one
}

// entry is an item that waits. A newer message may replace its content in place. If the entry is not to
// be taken any more, it stays in its list with gone set.
type entry struct {
	Item
	gone   bool
	queued bool // the entry is in queue, not in urgent or votes
}

// peer has what waits from one peer.
type peer struct {
	messages int
	notes    int
	newest   map[subject]*entry // by subject, the newest message put since the peer's last note
}

// subject is what a message is about. Of some kinds, a newer message makes an older one on the same subject
// worthless.
type subject struct {
	kind     string
	election election.Name
}

// subjectOf returns false for a kind of which every message counts.
func subjectOf(m election.Message) (subject, bool) {
	switch m := m.(type) {
	case election.Heartbeat, election.HeartbeatAck, election.Candidacies:
		return subject{kind: election.Kind(m)}, true
	case election.VoteRequest:
		return subject{election.Kind(m), m.Election}, true
	}
	return subject{}, false
}

// Put adds a message, and reports whether there was room.
func (b *Inbox) Put(from election.PeerID, m election.Message) bool {
	p := b.peer(from)
	defer b.tidy(from, p)
	if m, is := m.(election.Release); is {
		b.cancel(p, m)
	}
	about, replaces := subjectOf(m)
	urgent := isUrgent(m) && p.notes == 0
	if older := p.newest[about]; older != nil {
		b.vain++
		if !urgent || !older.queued {
			older.Message = m
			return true
		}
		p.leave(older) // the older one was put behind a note, which has been taken since
		older.gone = true
	}
	if !urgent && p.messages >= PerPeer {
		return false
	}
	p.messages++
	e := &entry{Item: Item{Peer: from, Message: m}}
	switch {
	case urgent:
		b.urgent = append(b.urgent, e)
	case p.notes == 0 && !isWord(m):
		b.votes = append(b.votes, e)
	default:
		e.queued = true
		b.queue = append(b.queue, e)
	}
	if replaces {
		if p.newest == nil {
			p.newest = map[subject]*entry{}
		}
		p.newest[about] = e
	}
	return true
}

// cancel drops a waiting Vote Request for a term that its sender now releases.
func (b *Inbox) cancel(p *peer, m election.Release) {
	e := p.newest[subject{election.Kind(election.VoteRequest{}), m.Election}]
	if e == nil {
		return
	}
	if r := e.Message.(election.VoteRequest); r.Holder == m.Holder && r.Term <= m.Term {
		p.leave(e)
		e.gone = true
		b.vain++
	}
}

func isUrgent(m election.Message) bool {
	switch m.(type) {
	case election.Heartbeat, election.HeartbeatAck:
		return true
	}
	return false
}

// isWord reports whether a message belongs to selection or is a question: these come last.
func isWord(m election.Message) bool {
	switch m.(type) {
	case election.Selection, election.Inquiry, election.CandidaciesAck, election.Call, election.CallAnswer:
		return true
	}
	return false
}

// Note adds a note. A note is never refused, and is taken before every message of the peer that is put
// after it. When it is taken, the urgent messages and votes of the peer that were put before it and still
// wait are dropped.
func (b *Inbox) Note(from election.PeerID, note any) {
	p := b.peer(from)
	p.notes++
	p.newest = nil // later messages are of another connection, and must not replace earlier ones
	b.queue = append(b.queue, &entry{Item: Item{Peer: from, Note: note}})
}

// Unsay removes the peer's first note for which the function fits returns true, and everything from the
// peer that was put after that note. It reports whether there was such a note.
func (b *Inbox) Unsay(from election.PeerID, fits func(note any) bool) bool {
	at := slices.IndexFunc(b.queue, func(e *entry) bool { return e.Peer == from && e.Message == nil && fits(e.Note) })
	if at < 0 {
		return false
	}
	p := b.peer(from)
	b.queue = b.queue[:at+len(p.drop(from, b.queue[at:]))]
	b.tidy(from, p)
	return true
}

// Take returns what is to be handled next; false if nothing waits.
func (b *Inbox) Take() (Item, bool) {
	for {
		var e *entry
		switch {
		case len(b.urgent) > 0 && (b.row < inRow || len(b.queue)+len(b.votes) == 0):
			e = shift(&b.urgent)
			b.row++
		case len(b.votes) > 0 && (b.votesRow < inRow || len(b.queue) == 0):
			e = shift(&b.votes)
			b.row, b.votesRow = 0, b.votesRow+1
		case len(b.queue) > 0:
			e = shift(&b.queue)
			b.row, b.votesRow = 0, 0
		default:
			return Item{}, false
		}
		if e.gone {
			continue
		}
		p := b.peer(e.Peer)
		p.leave(e)
		if e.Message == nil {
			b.urgent = p.drop(e.Peer, b.urgent)
			b.votes = p.drop(e.Peer, b.votes)
		}
		b.tidy(e.Peer, p)
		return e.Item, true
	}
}

// drop removes the peer's entries from a list.
func (p *peer) drop(id election.PeerID, list []*entry) []*entry {
	return slices.DeleteFunc(list, func(e *entry) bool {
		if e.Peer == id && !e.gone {
			p.leave(e)
		}
		return e.Peer == id
	})
}

// Waiting returns how many entries the inbox keeps, those with gone set included.
func (b *Inbox) Waiting() int { return len(b.queue) + len(b.votes) + len(b.urgent) }

// Outdated returns how many messages were never taken because a newer one had made them worthless.
func (b *Inbox) Outdated() uint64 { return b.vain }

// leave records that an entry waits no more.
func (p *peer) leave(e *entry) {
	if e.Message == nil {
		p.notes--
		return
	}
	if about, _ := subjectOf(e.Message); p.newest[about] == e {
		delete(p.newest, about)
	}
	p.messages--
}

func shift(list *[]*entry) *entry {
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

// tidy forgets a peer if nothing from it waits.
func (b *Inbox) tidy(id election.PeerID, p *peer) {
	if p.messages == 0 && p.notes == 0 {
		delete(b.peers, id)
	}
}
