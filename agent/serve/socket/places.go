package socket

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/door"
)

// Origin is what a connection counts for: a user, or a network address.
type Origin struct {
	Name     string // a name for people
	Favoured bool   // no share bounds this origin, and it may use the reserve
}

// Places bounds the connections of a listener. A share bounds those of each origin. A total bounds all
// of them, with a reserve for favoured origins. If all places are taken, a new connection replaces an idle
// one. Among the origins that have an idle connection, the origin with most connections loses the one
// that has been idle for longest. So a crowd from one origin can't keep out others. An origin never loses
// a connection to an origin that has more. If an origin has used up its share, its new connection
// replaces an idle one of its own. If no idle connection can be closed, the new one is refused.
type Places struct {
	net.Listener
	share int
	// Brief means that every answer is short. If no connection is idle, the one whose answer has taken
	// longest may then be closed too: its reader does not read.
	Brief  bool
	origin func(*Conn) Origin
	// Opened, if not nil, bounds how often an origin may connect. Connections beyond that are
	// closed without an answer, since answers to a crowd would delay others.
	Opened *door.Pace[string]

	mu    sync.Mutex
	taken *door.Places[string] // by the origin's name
	open  map[*Conn]struct{}
	turns int
}

func NewPlaces(l net.Listener, total, each, reserve int, of func(*Conn) Origin) *Places {
	return &Places{Listener: l, share: each, origin: of, taken: door.NewPlaces[string](total, reserve), open: map[*Conn]struct{}{}}
}

// Accept returns the next connection that has a place. It never waits until a place is free.
func (p *Places) Accept() (net.Conn, error) {
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
func (p *Places) admit(c net.Conn) *Conn {
	k := &Conn{Conn: c, places: p}
	if who, err := PeerOf(c); err == nil {
		k.Peer, k.Vouched = who, true
	}
	k.origin = p.origin(k)
	if p.Opened != nil && !p.Opened.Take(election.Instant(time.Now().UnixNano()), k.origin.Name, 1) {
		c.Close()
		return nil
	}
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

// room takes a place for one more connection of the origin. gone is the connection that lost its place
// for it, which the caller has to close; nil: none did. If no place is free, why is the reason.
func (p *Places) room(o Origin) (gone *Conn, why string) {
	share := p.share
	if o.Favoured {
		share = 0
	}
	switch p.taken.Enter(o.Name, 1, share, o.Favoured) {
	case nil:
		return nil, ""
	case door.ErrShare:
		gone = p.oldest(func(k *Conn) bool { return k.origin == o })
		why = fmt.Sprintf("%s has %d connections to this agent, which is its share: close some", o.Name, p.taken.Of(o.Name))
	default:
		most := 0
		if !o.Favoured {
			most = p.taken.Of(o.Name)
		}
		for k := range p.open {
			if !k.busy || p.Brief {
				most = max(most, p.sharing(k))
			}
		}
		if gone = p.oldest(func(k *Conn) bool { return most > 0 && p.sharing(k) == most }); gone == nil && o.Favoured {
			gone = p.oldest(func(*Conn) bool { return true })
		}
		why = fmt.Sprintf("there are %d connections to this agent, which is the limit: try again", len(p.open))
	}
	if gone == nil {
		return nil, why
	}
	p.leave(gone)
	_ = p.taken.Enter(o.Name, 1, 0, true) // the place that has just become free
	return gone, ""
}

// sharing is how many connections the origin of k has; 0: no share bounds that origin.
func (p *Places) sharing(k *Conn) int {
	if k.origin.Favoured || k.origin == (Origin{}) { // a candidacy has an empty origin
		return 0
	}
	return p.taken.Of(k.origin.Name)
}

// oldest returns, of the connections that fit, the one that has been idle for longest. If none is idle,
// the result is nil, or with Brief the connection that has been busy for longest.
func (p *Places) oldest(fits func(*Conn) bool) (idle *Conn) {
	var busy *Conn
	for k := range p.open {
		switch {
		case !fits(k):
		case k.busy && (busy == nil || k.turned < busy.turned):
			busy = k
		case !k.busy && (idle == nil || k.turned < idle.turned):
			idle = k
		}
	}
	if idle == nil && p.Brief {
		return busy
	}
	return idle
}

// leave frees the place of a connection, once.
func (p *Places) leave(k *Conn) {
	if _, open := p.open[k]; !open {
		return
	}
	delete(p.open, k)
	p.taken.Leave(k.origin.Name, 1)
}

// turn makes a connection the newest in the order in which connections are closed.
func (p *Places) turn(k *Conn) {
	p.turns++
	k.turned = p.turns
}

// Conn is a connection that has a place.
type Conn struct {
	net.Conn
	places   *Places
	Peer     Peer
	Vouched  bool // the kernel names the peer
	Accepted election.Instant

	// Guarded by Places.
	origin Origin // empty: the connection counts for nobody
	busy   bool
	turned int // Places.turns when the connection came or busy was last set
}

// Turn records whether a request is being answered.
func (k *Conn) Turn(busy bool) {
	k.places.mu.Lock()
	defer k.places.mu.Unlock()
	k.busy = busy
	k.places.turn(k)
}

// excuse takes the connection out of its origin's share: the connection has become a candidacy,
// and candidacies have their own bounds.
func (k *Conn) excuse() {
	k.places.mu.Lock()
	defer k.places.mu.Unlock()
	if _, open := k.places.open[k]; open {
		k.places.taken.Leave(k.origin.Name, 1)
		k.origin = Origin{}
		_ = k.places.taken.Enter(k.origin.Name, 1, 0, true) // the place that has just become free
	}
}

func (k *Conn) Close() error {
	k.places.mu.Lock()
	k.places.leave(k)
	k.places.mu.Unlock()
	return k.Conn.Close()
}

// Follow records what net/http reports: that a connection is idle, or was taken over. That a connection
// is busy is recorded by the handler, since net/http calls a connection active from its first byte on.
func Follow(c net.Conn, state http.ConnState) {
	k, ok := c.(*Conn)
	switch {
	case !ok:
	case state == http.StateIdle:
		k.Turn(false)
	case state == http.StateHijacked:
		k.excuse()
	}
}

const refusalTime = 50 * time.Millisecond // how long the answer to a connection without a place may take

// refuseConn answers any request with the reason, and closes the connection.
func refuseConn(c net.Conn, why string) {
	body, _ := json.Marshal(api.Error{Err: api.ErrorDetail{Code: api.CodeBusy, Message: why}}) // plain text, which always encodes
	_ = c.SetWriteDeadline(time.Now().Add(refusalTime))
	_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	_ = c.Close()
}

// AddressOf is the origin of a connection that counts for its address.
func AddressOf(k *Conn) Origin { return Origin{Name: "address " + network(k.RemoteAddr())} }

// network names the network in which one party can have all addresses; for IPv4, the address alone.
func network(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a.String()
	}
	n := door.Network(tcp.AddrPort().Addr())
	if n.IsSingleIP() {
		return n.Addr().String()
	}
	return n.String()
}
