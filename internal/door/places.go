// Package door bounds what others may use of this agent: how much of something at once (Places), and how
// often they may do something (Pace).
//
// It guarantees that no source gets more than its share, that favoured sources have a reserve, and that its
// memory is bounded. Its callers decide what a source is.
package door

import (
	"errors"
	"net/netip"
	"sync"
)

// The places of a network port for connections without a proven identity.
const (
	Unproven   = 128
	ForMembers = 32 // the part of these places that only connections from members' addresses get
)

var (
	ErrShare = errors.New("the source has as much as one may have")
	ErrFull  = errors.New("everything is taken")
)

// Places counts the taken places, by source. It is safe for concurrent use.
type Places[S comparable] struct {
	total, reserve int

	mu    sync.Mutex
	taken int
	of    map[S]int
}

// NewPlaces returns total places. Of these, reserve places are only for favoured sources.
func NewPlaces[S comparable](total, reserve int) *Places[S] {
	return &Places[S]{total: total, reserve: reserve, of: map[S]int{}}
}

// Enter takes n places for a source. It returns ErrShare if the source would then have more than share (0: no
// limit), and ErrFull if too few places are free.
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

// Free makes n places free for others. They still count for their source until Forgive.
func (p *Places[S]) Free(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
}

// Forgive stops counting n places for their source.
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

// Of returns how many places count for the source.
func (p *Places[S]) Of(source S) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[source]
}

// Network returns the network whose addresses one party may own together: a /64 for IPv6, the address alone for
// IPv4.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // not valid if the address is not valid
	return p
}
