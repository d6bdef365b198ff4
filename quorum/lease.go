package quorum

import (
	"math"
	"time"

	"github.com/doyen-election/doyen/election"
)

// HolderLease is how long, on its own clock, a holder may act on a lease of
// length l counted from the send: l × (1−ρ)/(1+ρ), rounded down. A voter's
// clock that runs fast and a holder's that runs slow then still agree (H3).
func HolderLease(l time.Duration, drift float64) time.Duration {
	return time.Duration(math.Floor(float64(l) * (1 - drift) / (1 + drift)))
}

// Outlast is how long one clock must wait to be sure that a lease of length l
// has ended on any other: l × (1+ρ)/(1−ρ), rounded up (V5, R4).
func Outlast(l time.Duration, drift float64) time.Duration {
	return time.Duration(math.Ceil(float64(l) * (1 + drift) / (1 - drift)))
}

// Lease is the holder's side of one term: which voters promised, and until
// when it may act.
//
// Invariant: every counted send was acknowledged at the roster's version.
type Lease struct {
	Term   election.Term
	length time.Duration
	drift  float64
	roster *election.Roster
	sends  map[election.PeerID]election.Instant // voter → send time of its newest acknowledged send
	earned election.Instant                     // the latest end ever earned; it stays good (R6)
	won    *election.Roster                     // under which a majority first promised; nil before
}

// NewLease returns a lease that no voter has promised yet.
func NewLease(t election.Term, length time.Duration, drift float64, r *election.Roster) *Lease {
	return &Lease{Term: t, length: length, drift: drift, roster: r,
		sends: map[election.PeerID]election.Instant{}}
}

// Count records that the voter acknowledged, at version v, what was sent at
// that instant. Answers at another version, or older than what the voter
// already acknowledged, change nothing.
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

// Won is the roster whose majority first promised the term, nil before that.
func (l *Lease) Won() *election.Roster { return l.won }

// End is until when the holder may act, on its own clock; 0 if no majority has
// promised yet.
func (l *Lease) End() election.Instant { return l.earned }

// SupportedBy reports whether the voter's promise counts at this version.
func (l *Lease) SupportedBy(voter election.PeerID) bool {
	_, ok := l.sends[voter]
	return ok
}

// Reroster goes on under a newer roster: what was earned stays good, but only
// answers at the new version count from now on (H3, R6).
func (l *Lease) Reroster(r *election.Roster) {
	l.roster = r
	clear(l.sends)
}

// Sends remembers when each send left, for as long as an answer to it could
// still be worth something.
type Sends struct {
	last election.SendID
	log  []election.Instant // of the newest sends; the last one is last's
	keep time.Duration
}

// NewSends returns a log that remembers sends for that long, a lease being
// enough.
func NewSends(keep time.Duration) *Sends { return &Sends{keep: keep} }

// Next numbers a send that leaves now. Copies of one message to several voters
// may share a number, two messages never: an answer must not count for what
// its request did not ask.
func (s *Sends) Next(now election.Instant) election.SendID {
	old := 0
	for old < len(s.log) && s.log[old].Add(s.keep) < now {
		old++
	}
	s.log = append(s.log[old:], now)
	s.last++
	return s.last
}

// At returns when the send left; false if it is unknown or too old.
func (s *Sends) At(id election.SendID) (election.Instant, bool) {
	first := s.last - election.SendID(len(s.log)) + 1
	if id < first || id > s.last {
		return 0, false
	}
	return s.log[id-first], true
}
