package ring

import (
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// begin starts a round with this agent's own token. If there is no other candidate, the token is
// back at once. If no round may start now (Field.Closed), begin only stops.
func (r *Ring) begin(now election.Instant, f election.Field, v *election.Verdict) {
	if f.Closed {
		r.Stop()
		return
	}
	ring := members(f, r.self)
	r.number++
	r.phase, r.until = entered, r.giveUpAt(now, f, ring)
	r.ahead, r.holders = election.Rank{}, better(f)
	r.send(now, ring, hop{to: r.self, token: election.RingElection{
		Election: r.election,
		Round:    election.RoundID{Origin: r.self, Number: r.number},
		Best:     f.Self,
	}}, v)
}

// giveUpAt is when a token sent now counts as lost. No vote is granted before f.Patience. From then on,
// each hop of the ring has one hop timeout. Each better candidate adds another one, so that not all
// candidates start again at once.
func (r *Ring) giveUpAt(now election.Instant, f election.Field, ring []election.PeerID) election.Instant {
	hops := len(ring) + len(better(f))
	return max(now, f.Patience).Add(time.Duration(hops) * r.timeout)
}

// yield ends this agent's round, and waits for the outcome of a better candidate's round.
func (r *Ring) yield(f election.Field, to election.Rank, until election.Instant) {
	if r.phase == nominated {
		return
	}
	if r.phase != idle {
		until = max(until, r.until)
	}
	r.dropHop(r.self)
	r.phase, r.until = yielded, until
	r.ahead, r.holders = to, nil
	if contains(members(f, r.self), to.Peer) {
		r.holders = []election.PeerID{to.Peer}
	}
}

func (r *Ring) nominate(v *election.Verdict) {
	r.dropHop(r.self)
	r.phase = nominated
	v.Nominee = true
}

// send sends a token to the candidate after h.to. If that candidate is this agent, its own token is back, and any
// other token is dropped. A token is also dropped if h.to is its origin, unless the origin is this agent.
func (r *Ring) send(now election.Instant, ring []election.PeerID, h hop, v *election.Verdict) {
	origin := h.token.Round.Origin
	r.dropHop(origin)
	if h.to == origin && origin != r.self {
		return
	}
	h.to, h.until = after(ring, h.to), now.Add(r.timeout)
	switch {
	case h.to != r.self:
		r.hops = append(r.hops, h)
		v.Send = append(v.Send, election.Envelope{To: h.to, Message: h.token})
	case origin == r.self:
		r.nominate(v)
	}
}

// proceed does what is due, and completes the verdict.
func (r *Ring) proceed(now election.Instant, f election.Field, v election.Verdict) election.Verdict {
	ring := members(f, r.self)
	r.forget(ring)
	switch {
	case f.Leads != nil, !f.Able && r.phase != nominated: // the elector ends the bid of a nominee
		r.Stop()
	case r.phase != nominated:
		r.watch(now, f, ring)
	}
	for _, h := range slices.Clone(r.hops) {
		if now >= h.until || !contains(ring, h.to) {
			r.send(now, ring, h, &v)
		}
	}
	if (r.phase == entered || r.phase == yielded) && now >= r.until {
		r.begin(now, f, &v)
	}
	v.WakeAt = election.Never
	if r.phase == entered || r.phase == yielded {
		v.WakeAt = r.until
	}
	for _, h := range r.hops {
		v.WakeAt = min(v.WakeAt, h.until)
	}
	return v
}

// watch notices if one of the holders has left the ring: the token for which this agent waits may be
// lost. Then the best remaining candidate starts again at once, and each next one a hop timeout later.
func (r *Ring) watch(now election.Instant, f election.Field, ring []election.PeerID) {
	before := len(r.holders)
	r.holders = slices.DeleteFunc(r.holders, func(p election.PeerID) bool { return !contains(ring, p) })
	if len(r.holders) == before {
		return
	}
	r.ahead = election.Rank{}
	r.until = min(r.until, now.Add(time.Duration(len(better(f)))*r.timeout))
}

func better(f election.Field) []election.PeerID {
	var peers []election.PeerID
	for _, rank := range f.Ranks {
		if rank.Above(f.Self) {
			peers = append(peers, rank.Peer)
		}
	}
	return peers
}

// forget drops the tokens of origins that have left the ring, because they would never come back.
func (r *Ring) forget(ring []election.PeerID) {
	r.hops = slices.DeleteFunc(r.hops, func(h hop) bool { return !contains(ring, h.token.Round.Origin) })
	r.passages = slices.DeleteFunc(r.passages, func(p passage) bool { return !contains(ring, p.origin) })
}

func (r *Ring) dropHop(origin election.PeerID) {
	r.hops = slices.DeleteFunc(r.hops, func(h hop) bool { return h.token.Round.Origin == origin })
}
