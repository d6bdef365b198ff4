package quorum

import (
	"math"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// HolderLease is how long a holder may act after its send left: l × (1−ρ)/(1+ρ), rounded down
// (H3). That is short enough even if the holder's clock is slow and the voters' clocks are fast.
func HolderLease(l time.Duration, drift float64) time.Duration {
	return time.Duration(math.Floor(float64(l) * (1 - drift) / (1 + drift)))
}

// Outlast is how long to wait, on this clock, until l has passed on every other clock: l ×
// (1+ρ)/(1−ρ), rounded up (V5, R4).
func Outlast(l time.Duration, drift float64) time.Duration {
	return time.Duration(math.Ceil(float64(l) * (1 + drift) / (1 - drift)))
}

// Lease is the holder's side of one term.
//
// Invariant: every send in sends was acknowledged at the roster's version.
type Lease struct {
	Term   election.Term
	least  time.Duration // the shortest lease in any request for the term
	length time.Duration // the lease that voters at the roster's version promise
	drift  float64
	roster *election.Roster
	sends  map[election.PeerID]election.Instant // voter → when its newest acknowledged send left
	earned election.Instant                     // the latest end so far; a newer roster does not take it back (R6)
	heard  election.Instant                     // see Heard
	won    *election.Roster                     // see Won
}

func NewLease(t election.Term, length time.Duration, drift float64, r *election.Roster) *Lease {
	l := &Lease{Term: t, least: length, drift: drift, sends: map[election.PeerID]election.Instant{}}
	l.Reroster(r)
	return l
}

// ResumeLease returns the lease of a term that a former life led. The lease runs until the given
// instant. Answers to that life's sends do not count for it (K4a).
func ResumeLease(t election.Term, length time.Duration, drift float64, r *election.Roster, until election.Instant) *Lease {
	l := NewLease(t, length, drift, r)
	l.earned, l.heard = until, until.Add(-HolderLease(max(length, l.length), drift)) // heard is a lower bound of the true instant
	return l
}

// Roster is the roster whose voters' answers count.
func (l *Lease) Roster() *election.Roster { return l.roster }

// Length is how long the voters promise, counted from each send.
func (l *Lease) Length() time.Duration { return l.length }

// Count records that the voter has acknowledged a send at version v. The send left at the instant `sent`.
func (l *Lease) Count(voter election.PeerID, sent election.Instant, v election.Version) {
	if l.roster == nil || v != l.roster.Version || !l.roster.Has(voter) {
		return
	}
	if at, ok := l.sends[voter]; ok && at >= sent {
		return
	}
	l.sends[voter] = sent
	if sent <= l.heard && sent.Add(HolderLease(l.length, l.drift)) <= l.earned {
		return // this can't extend the lease: a majority has acknowledged sends that left then or later
	}
	if since, ok := supportedSince(l.roster, l.sends); ok {
		l.earned = max(l.earned, since.Add(HolderLease(l.length, l.drift)))
		l.heard = max(l.heard, since)
		if l.won == nil {
			l.won = l.roster
		}
	}
}

// Won is the roster whose majority first promised the term; nil if none has yet.
func (l *Lease) Won() *election.Roster { return l.won }

// End is until when the holder may act; 0 if no majority has promised yet.
func (l *Lease) End() election.Instant { return l.earned }

// Heard is the latest instant such that a majority has acknowledged sends from then or later; 0: none has.
func (l *Lease) Heard() election.Instant { return l.heard }

// Counted returns, for each voter that has promised at the roster's version, when its newest counted send left.
func (l *Lease) Counted() map[election.PeerID]election.Instant { return l.sends }

// SupportedBy reports whether the voter has promised at the roster's version.
func (l *Lease) SupportedBy(voter election.PeerID) bool {
	_, ok := l.sends[voter]
	return ok
}

// Reroster continues the lease under a newer roster: from now on only answers at that roster's version
// count, with that roster's lease. If the roster sets no lease, a voter promises the lease that its grant
// has on record. This is never below the shortest lease in any request for the term (R14).
func (l *Lease) Reroster(r *election.Roster) {
	l.roster, l.length = r, l.least
	if agreed := r.Lease(); agreed != 0 {
		l.length, l.least = agreed, min(agreed, l.least)
	}
	clear(l.sends)
}

type Sends struct {
	last election.SendID
	log  []election.Instant // when the newest sends left; the last entry is for the newest send ID
	keep time.Duration
}

// NewSends returns a log that keeps each send for the given time (a lease is enough). It numbers them from `last` + 1.
func NewSends(keep time.Duration, last election.SendID) *Sends {
	return &Sends{keep: keep, last: last}
}

// Keep changes for how long the log keeps sends.
func (s *Sends) Keep(d time.Duration) { s.keep = d }

// Next returns the number of a send that leaves now (H2). Copies to several voters may share the number.
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

func Majority(n int) int { return n/2 + 1 }

// Confirmed reports whether the voters v with has(v) are a majority for votes: a
// majority of Voters, and once a joint roster is marked, also one of Next (R10).
func Confirmed(r *election.Roster, has func(election.PeerID) bool) bool {
	if r == nil || !confirms(r.Voters, has) {
		return false
	}
	return !r.Committed || confirms(r.Next, has)
}

// Accepted reports whether the acceptances of the voters v with has(v) commit the
// roster: majorities of both halves if it is joint, with or without the mark (R9).
func Accepted(r *election.Roster, has func(election.PeerID) bool) bool {
	return confirms(r.Voters, has) && (!r.Joint() || confirms(r.Next, has))
}

func confirms(voters []election.Voter, has func(election.PeerID) bool) bool {
	n := 0
	for _, v := range voters {
		if has(v.Peer) {
			n++
		}
	}
	return n >= Majority(len(voters))
}

// supportedSince is the latest instant such that a majority has counted sends that left at that
// instant or later (H3, R10).
func supportedSince(r *election.Roster, sends map[election.PeerID]election.Instant) (election.Instant, bool) {
	since, ok := majoritySend(r.Voters, sends)
	if !ok || !r.Committed {
		return since, ok
	}
	next, ok := majoritySend(r.Next, sends)
	return min(since, next), ok
}

func majoritySend(voters []election.Voter, sends map[election.PeerID]election.Instant) (election.Instant, bool) {
	var room [election.MaxVoters]election.Instant
	counted := room[:0]
	for _, v := range voters {
		if at, ok := sends[v.Peer]; ok {
			counted = append(counted, at)
		}
	}
	need := Majority(len(voters))
	if len(counted) < need {
		return 0, false
	}
	slices.Sort(counted)
	return counted[len(counted)-need], true
}
