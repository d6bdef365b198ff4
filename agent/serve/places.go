package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/serve/socket"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

// origin is what a connection counts for: a user, or a network address.
type origin struct {
	name     string // for people
	favoured bool   // its share is not bounded, and it may use the reserve
}

// places bounds the connections of a listener: those of each origin by a share, and all
// together, with a reserve for favoured ones. If all places are taken, the connection that has
// been idle for longest is closed. If the new one's origin has used up its share, that must be
// one of the same origin. If no such connection is idle, the new one is refused.
type places struct {
	net.Listener
	share int
	// brief means that no answer takes long: if no connection is idle, the one whose answer takes
	// longest is closed, since its reader does not read.
	brief  bool
	origin func(*placed) origin

	mu    sync.Mutex
	taken *door.Places[string] // by the origin's name
	open  map[*placed]struct{}
	turns int
}

func newPlaces(l net.Listener, total, each, reserve int, of func(*placed) origin) *places {
	return &places{Listener: l, share: each, origin: of, taken: door.NewPlaces[string](total, reserve), open: map[*placed]struct{}{}}
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
	if who, err := socket.PeerOf(c); err == nil {
		k.peer, k.vouched = who, true
	}
	k.origin = p.origin(k)
	p.mu.Lock()
	gone, why := p.room(k.origin)
	if why == "" {
		p.open[k] = struct{}{}
		p.turn(k)
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

// room takes a place for one more connection of the origin. It returns the connection that
// must be closed for that, which has lost its place already; or why there is no place.
func (p *places) room(o origin) (gone *placed, why string) {
	share := p.share
	if o.favoured {
		share = 0
	}
	switch p.taken.Enter(o.name, 1, share, o.favoured) {
	case nil:
		return nil, ""
	case door.ErrShare:
		gone = p.oldest(func(k *placed) bool { return k.origin == o && !k.exempt })
		why = fmt.Sprintf("%s has %d connections to this agent, which is its share: close some", o.name, p.taken.Of(o.name))
	default:
		if gone = p.oldest(func(k *placed) bool { return !k.origin.favoured }); gone == nil && o.favoured {
			gone = p.oldest(func(*placed) bool { return true })
		}
		why = fmt.Sprintf("there are %d connections to this agent, which is the limit: try again", len(p.open))
	}
	if gone == nil {
		return nil, why
	}
	p.leave(gone)
	_ = p.taken.Enter(o.name, 1, 0, true) // the place that has just become free
	return gone, ""
}

// oldest returns, of the connections that fit, the one that has been idle for longest; nil:
// there is none.
func (p *places) oldest(fits func(*placed) bool) (idle *placed) {
	var busy *placed
	for k := range p.open {
		switch {
		case !fits(k):
		case k.busy && (busy == nil || k.turned < busy.turned):
			busy = k
		case !k.busy && (idle == nil || k.turned < idle.turned):
			idle = k
		}
	}
	if idle == nil && p.brief {
		return busy
	}
	return idle
}

// leave frees the place of a connection, once.
func (p *places) leave(k *placed) {
	if _, open := p.open[k]; !open {
		return
	}
	delete(p.open, k)
	p.taken.Free(1)
	if !k.exempt {
		p.taken.Forgive(k.origin.name, 1)
	}
}

// turn puts a connection behind all others.
func (p *places) turn(k *placed) {
	p.turns++
	k.turned = p.turns
}

// placed is a connection that has a place.
type placed struct {
	net.Conn
	places   *places
	origin   origin
	peer     socket.Peer
	vouched  bool // the kernel names the peer
	accepted election.Instant

	// Guarded by places.
	busy   bool
	exempt bool // it no longer counts for its origin
	turned int  // when busy was set, counted by places
}

// turn records whether a request is being answered.
func (k *placed) turn(busy bool) {
	k.places.mu.Lock()
	defer k.places.mu.Unlock()
	k.busy = busy
	k.places.turn(k)
}

// excuse no longer counts the connection in its origin's share: it has become a candidacy, and
// candidacies have their own bounds.
func (k *placed) excuse() {
	k.places.mu.Lock()
	defer k.places.mu.Unlock()
	if _, open := k.places.open[k]; open && !k.exempt {
		k.exempt = true
		k.places.taken.Forgive(k.origin.name, 1)
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
