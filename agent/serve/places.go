package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
)

// origin is what a connection counts for: a user, or a network address.
type origin struct {
	name     string // for people
	favoured bool   // its share is not bounded, and it may use the reserve
}

// waiting is a line of connections, the one that joined first in front. Each connection is in
// one line of its origin and in one of all connections; which selects the links used.
type waiting struct {
	which       int
	front, back *placed
}

const (
	ofOrigin = iota
	ofAll
)

func (l *waiting) push(k *placed) {
	k.links[l.which] = links{prev: l.back}
	if l.back == nil {
		l.front = k
	} else {
		l.back.links[l.which].next = k
	}
	l.back = k
}

func (l *waiting) remove(k *placed) {
	at := k.links[l.which]
	if at.prev == nil {
		l.front = at.next
	} else {
		at.prev.links[l.which].next = at.next
	}
	if at.next == nil {
		l.back = at.prev
	} else {
		at.next.links[l.which].prev = at.prev
	}
	k.links[l.which] = links{}
}

type links struct{ prev, next *placed }

// queue holds idle connections, which wait for a request, and busy ones, which wait for the
// end of an answer.
type queue struct{ idle, busy waiting }

func newQueue(which int) queue { return queue{waiting{which: which}, waiting{which: which}} }

func (q *queue) of(busy bool) *waiting {
	if busy {
		return &q.busy
	}
	return &q.idle
}

// places bounds the connections of a listener: those of each origin by a share, and all
// together, with a reserve for favoured ones. If all places are taken, the connection that has
// been idle for longest is closed. If the new one's origin has used up its share, that must be
// one of the same origin. If no such connection is idle, the new one is refused.
type places struct {
	net.Listener
	total, share, reserve int
	// brief means that no answer takes long: if no connection is idle, the one whose answer takes
	// longest is closed, since its reader does not read.
	brief  bool
	origin func(*placed) origin

	mu     sync.Mutex
	count  int
	shares map[string]*share
	all    map[bool]*queue // by favoured
}

// share is what one origin has open. The count does not include exempt connections.
type share struct {
	count int
	queue
}

func newPlaces(l net.Listener, total, each, reserve int, of func(*placed) origin) *places {
	ordinary, favoured := newQueue(ofAll), newQueue(ofAll)
	return &places{
		Listener: l, total: total, share: each, reserve: reserve, origin: of,
		shares: map[string]*share{}, all: map[bool]*queue{false: &ordinary, true: &favoured},
	}
}

// Accept returns the next connection that has a place. It never waits until a place is free.
func (p *places) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if k := p.admit(c); k != nil {
			return k, nil
		}
	}
}

// admit finds a place for a connection, or refuses it and returns nil.
func (p *places) admit(c net.Conn) *placed {
	k := &placed{Conn: c, places: p}
	if who, err := peerOf(c); err == nil {
		k.peer, k.vouched = who, true
	}
	k.origin = p.origin(k)
	p.mu.Lock()
	gone, why := p.room(k.origin)
	if why == "" {
		p.enter(k)
	}
	p.mu.Unlock()
	if gone != nil {
		gone.Conn.Close()
	}
	if why != "" {
		refuseConn(c, why)
		return nil
	}
	return k
}

// room makes a place for one more connection of the origin. It returns the connection that
// must be closed for that, which has lost its place already; or why there is no place.
func (p *places) room(o origin) (gone *placed, why string) {
	s := p.shares[o.name]
	if !o.favoured && s != nil && s.count >= p.share {
		gone = p.oldest(&s.queue)
		why = fmt.Sprintf("%s has %d connections to this agent, which is its share: close some", o.name, s.count)
	} else {
		bound := p.total
		if !o.favoured {
			bound -= p.reserve
		}
		if p.count < bound {
			return nil, ""
		}
		gone = p.oldest(p.all[false])
		if gone == nil && o.favoured {
			gone = p.oldest(p.all[true])
		}
		why = fmt.Sprintf("there are %d connections to this agent, which is the limit: try again", p.count)
	}
	if gone == nil {
		return nil, why
	}
	p.leave(gone)
	return gone, ""
}

// oldest returns the connection that is to be closed for a new one; nil: there is none.
func (p *places) oldest(q *queue) *placed {
	if q.idle.front == nil && p.brief {
		return q.busy.front
	}
	return q.idle.front
}

func (p *places) enter(k *placed) {
	s := p.shares[k.origin.name]
	if s == nil {
		s = &share{queue: newQueue(ofOrigin)}
		p.shares[k.origin.name] = s
	}
	p.count++
	s.count++
	k.open = true
	p.line(k)
}

// line puts a connection at the end of its two lines.
func (p *places) line(k *placed) {
	p.shares[k.origin.name].of(k.busy).push(k)
	p.all[k.origin.favoured].of(k.busy).push(k)
}

func (p *places) unline(k *placed) {
	p.shares[k.origin.name].of(k.busy).remove(k)
	p.all[k.origin.favoured].of(k.busy).remove(k)
}

// leave frees the place of a connection, once.
func (p *places) leave(k *placed) {
	if !k.open {
		return
	}
	k.open = false
	p.unline(k)
	p.count--
	s := p.shares[k.origin.name]
	if !k.exempt {
		s.count--
	}
	if s.idle.front == nil && s.busy.front == nil {
		delete(p.shares, k.origin.name)
	}
}

// placed is a connection that has a place.
type placed struct {
	net.Conn
	places  *places
	origin  origin
	peer    peer
	vouched bool // the kernel names the peer

	// Guarded by places.
	open, busy, exempt bool
	links              [2]links
}

// turn moves the connection to another line: it is busy while a request is answered.
func (k *placed) turn(busy bool) {
	k.places.mu.Lock()
	defer k.places.mu.Unlock()
	if !k.open {
		return
	}
	k.places.unline(k)
	k.busy = busy
	k.places.line(k)
}

// excuse no longer counts the connection in its origin's share: it has become a candidacy, and
// candidacies have their own bounds.
func (k *placed) excuse() {
	k.places.mu.Lock()
	defer k.places.mu.Unlock()
	if k.open && !k.exempt {
		k.exempt = true
		k.places.shares[k.origin.name].count--
	}
}

func (k *placed) Close() error {
	k.places.mu.Lock()
	k.places.leave(k)
	k.places.mu.Unlock()
	return k.Conn.Close()
}

// follow keeps a connection in the right line as net/http reports its state. Only the handler
// reports that a request is there, since net/http calls a connection active from the first byte on.
func follow(c net.Conn, state http.ConnState) {
	k, ok := c.(*placed)
	switch {
	case !ok:
	case state == http.StateIdle:
		k.turn(false)
	case state == http.StateHijacked:
		k.excuse()
	}
}

// refuseConn answers any request with the reason, and closes the connection.
func refuseConn(c net.Conn, why string) {
	body, _ := json.Marshal(api.Error{Err: api.ErrorDetail{Code: api.CodeBusy, Message: why}}) // plain text, which always encodes
	_ = c.SetWriteDeadline(time.Now().Add(lastWordTime))
	_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	_ = c.Close()
}
