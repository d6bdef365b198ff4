package quorum

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// HolderLease is how long a holder may act from the send, though its clock be slow and
// the voters' fast: l × (1−ρ)/(1+ρ), rounded down (H3).
func HolderLease(l time.Duration, drift float64) time.Duration {
	return time.Duration(math.Floor(float64(l) * (1 - drift) / (1 + drift)))
}

// Outlast is how long to wait by one clock until l has passed on every other:
// l × (1+ρ)/(1−ρ), rounded up (V5, R4).
func Outlast(l time.Duration, drift float64) time.Duration {
	return time.Duration(math.Ceil(float64(l) * (1 + drift) / (1 - drift)))
}

// Lease is the holder's side of one term.
//
// Invariant: every counted send was acknowledged at the roster's version.
type Lease struct {
	Term   election.Term
	length time.Duration
	drift  float64
	roster *election.Roster
	sends  map[election.PeerID]election.Instant // voter → when its newest acknowledged send left
	earned election.Instant                     // the latest end ever earned; it stays good (R6)
	won    *election.Roster                     // under which a majority first promised; nil before
}

func NewLease(t election.Term, length time.Duration, drift float64, r *election.Roster) *Lease {
	return &Lease{Term: t, length: length, drift: drift, roster: r,
		sends: map[election.PeerID]election.Instant{}}
}

// Clone returns a copy that shares nothing that changes.
func (l *Lease) Clone() *Lease {
	n := *l
	n.sends = maps.Clone(l.sends)
	return &n
}

// Count records that the voter acknowledged, at version v, what left at that instant.
func (l *Lease) Count(voter election.PeerID, sent election.Instant, v election.Version) {
	if v != l.roster.Version || !l.roster.Has(voter) {
		return
	}
	if at, ok := l.sends[voter]; ok && at >= sent {
		return
	}
	l.sends[voter] = sent
	if sent.Add(HolderLease(l.length, l.drift)) <= l.earned {
		return // a majority acknowledged what left then or later
	}
	if since, ok := supportedSince(l.roster, l.sends); ok {
		l.earned = max(l.earned, since.Add(HolderLease(l.length, l.drift)))
		if l.won == nil {
			l.won = l.roster
		}
	}
}

// Won is the roster whose majority first promised the term; nil before.
func (l *Lease) Won() *election.Roster { return l.won }

// End is until when the holder may act; 0 before a majority has promised.
func (l *Lease) End() election.Instant { return l.earned }

// SupportedBy reports whether the voter has promised at the roster's version.
func (l *Lease) SupportedBy(voter election.PeerID) bool {
	_, ok := l.sends[voter]
	return ok
}

// Reroster goes on under a newer roster, at whose version answers count from now on.
func (l *Lease) Reroster(r *election.Roster) {
	l.roster = r
	clear(l.sends)
}

// Sends remembers when each send left.
type Sends struct {
	last election.SendID
	log  []election.Instant // of the newest sends; the last one is last's
	keep time.Duration
}

// NewSends returns a log that remembers sends for that long; a lease is enough.
func NewSends(keep time.Duration) *Sends { return &Sends{keep: keep} }

// Clone returns a copy. What is in the log never changes.
func (s *Sends) Clone() *Sends { return &Sends{last: s.last, log: slices.Clip(s.log), keep: s.keep} }

// Next numbers a send that leaves now (H2). Copies to several voters may share it.
func (s *Sends) Next(now election.Instant) election.SendID {
	old := 0
	for old < len(s.log) && s.log[old].Add(s.keep) < now {
		old++
	}
	s.log = append(s.log[old:], now)
	s.last++
	return s.last
}

func (s *Sends) At(id election.SendID) (election.Instant, bool) {
	first := s.last - election.SendID(len(s.log)) + 1
	if id < first || id > s.last {
		return 0, false
	}
	return s.log[id-first], true
}
