// Package door bounds what others may take of this agent: how much of something at once
// (Places), and how often they may do something (Pace).
//
// It guarantees that no source has more than its share, that a reserve is left to favoured
// sources, and that what it remembers is bounded. Its users say who a source is.
package door

import (
	"errors"
	"net/netip"
	"sync"
)

// The places of a port on the network, for connections that have not proven whose they are.
const (
	Unproven   = 128
	ForMembers = 32 // the last of them, which only connections from addresses of members get
)

var (
	ErrShare = errors.New("the source has as much as one may have")
	ErrFull  = errors.New("everything is taken")
)

// Places counts what is taken, by source. It is safe for concurrent use.
type Places[S comparable] struct {
	total, reserve int

	mu    sync.Mutex
	taken int
	of    map[S]int
}

// NewPlaces returns that many places. The last of them, the reserve, are for favoured sources.
func NewPlaces[S comparable](total, reserve int) *Places[S] {
	return &Places[S]{total: total, reserve: reserve, of: map[S]int{}}
}

// Enter takes n places. The error is ErrShare if the source would have more than share (0: it
// may have any number), or ErrFull.
func (p *Places[S]) Enter(source S, n, share int, favoured bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := p.total
	if !favoured {
		most -= p.reserve
	}
	switch {
	case share > 0 && p.of[source]+n > share:
		return ErrShare
	case p.taken+n > most:
		return ErrFull
	}
	p.taken += n
	p.of[source] += n
	return nil
}

// Leave gives n places back.
func (p *Places[S]) Leave(source S, n int) {
	p.Free(n)
	p.Forgive(source, n)
}

// Free gives n places to others, and goes on counting them for their source.
func (p *Places[S]) Free(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
}

// Forgive no longer counts n places for their source.
func (p *Places[S]) Forgive(source S, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[source] -= n; p.of[source] <= 0 {
		delete(p.of, source)
	}
}

// Taken returns how many places are taken, and by how many sources.
func (p *Places[S]) Taken() (places, sources int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, len(p.of)
}

// Of returns how many places count for a source.
func (p *Places[S]) Of(source S) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[source]
}

// Network is the network in which one party can have many addresses: for IPv6 a /64, for IPv4
// the address alone.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // invalid if the address is
	return p
}
