package ring

import (
	"cmp"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Receive handles a valid Ring message of this election, and drops every other message.
func (r *Ring) Receive(now election.Instant, f election.Field, from election.PeerID, m election.Message) election.Verdict {
	var v election.Verdict
	if from != r.self && from != "" {
		switch m := m.(type) {
		case election.RingElection:
			if m.Election == r.election && m.Round.Origin == m.Best.Peer && m.Best.Peer != "" {
				v.Send = append(v.Send, election.Envelope{To: from, Message: election.RingAck{
					Election: r.election, Round: m.Round, Best: m.Best.Peer,
				}})
				r.receiveToken(now, f, m, &v)
			}
		case election.RingAck:
			if m.Election == r.election {
				r.receiveAck(from, m)
			}
		case election.RingElected:
			if m.Election == r.election && m.Leader.Peer != "" {
				r.receiveElected(f, election.Leadership{Leader: m.Leader, Term: m.Term}, &v)
			}
		}
	}
	return r.proceed(now, f, v)
}

// receiveToken passes on a better token. It drops a worse one, and sends this agent's own if none is under way.
func (r *Ring) receiveToken(now election.Instant, f election.Field, m election.RingElection, v *election.Verdict) {
	ring := members(f, r.self)
	switch {
	case m.Best.Peer == r.self:
		r.receiveOwn(now, f, m, v)
	case f.Leads != nil:
		v.Send = append(v.Send, r.elected(m.Round.Origin, *f.Leads))
	case !contains(ring, m.Best.Peer):
		// The best candidate of the token has died or left, so the token would circulate forever.
		if f.Able && r.phase == idle {
			r.begin(now, f, v)
		}
	case !r.notePassage(m):
		// The token came before: the sender skipped a slow hop, or missed an ack.
	case !f.Able:
		r.send(now, ring, hop{token: m, to: r.self}, v)
	case m.Best.Above(f.Self):
		if r.phase != yielded || !r.ahead.Above(m.Best) {
			r.yield(f, m.Best, r.giveUpAt(now, f, ring))
		}
		r.send(now, ring, hop{token: m, to: r.self}, v)
	case r.phase == idle || r.phase == yielded && r.ahead == (election.Rank{}):
		r.begin(now, f, v)
	}
}

// receiveOwn makes this agent the nominee if the token of its current round is back. If its rank has changed
// since it sent the token, it starts a new round, because the others compared its old rank.
func (r *Ring) receiveOwn(now election.Instant, f election.Field, m election.RingElection, v *election.Verdict) {
	switch {
	case r.phase != entered || m.Round.Number != r.number || !f.Able || f.Leads != nil:
	case m.Best != f.Self:
		r.begin(now, f, v)
	default:
		r.nominate(v)
	}
}

func (r *Ring) receiveAck(from election.PeerID, m election.RingAck) {
	r.hops = slices.DeleteFunc(r.hops, func(h hop) bool {
		return h.to == from && h.token.Round == m.Round && h.token.Best.Peer == m.Best
	})
}

// receiveElected passes on a new announcement, until the announcement is back at the leader. An Elected
// may be late, so it ends no round: the elector calls Stop when heartbeats show which agent leads.
func (r *Ring) receiveElected(f election.Field, l election.Leadership, v *election.Verdict) {
	if l.Leader.Peer == r.self || !r.noteAnnounced(l) {
		return
	}
	if next := after(members(f, r.self), r.self); next != r.self {
		v.Send = append(v.Send, r.elected(next, l))
	}
}

// noteAnnounced reports whether the announcement is newer than all earlier ones, and records it if so.
func (r *Ring) noteAnnounced(l election.Leadership) bool {
	if cmp.Or(
		cmp.Compare(l.Term, r.announced.Term),
		cmp.Compare(l.Leader.Peer, r.announced.Leader.Peer),
		cmp.Compare(l.Leader.Lineage, r.announced.Leader.Lineage),
	) <= 0 {
		return false
	}
	r.announced = l
	return true
}

// notePassage reports whether the token is newer than all earlier ones of the same lineage of its
// origin. Tokens of different lineages are not compared: the one that arrives last counts.
func (r *Ring) notePassage(m election.RingElection) bool {
	p := passage{origin: m.Best.Peer, joined: m.Best.JoinedAt, number: m.Round.Number}
	i := slices.IndexFunc(r.passages, func(q passage) bool { return q.origin == p.origin })
	switch {
	case i < 0:
		r.passages = append(r.passages, p)
	case r.passages[i].joined == p.joined && r.passages[i].number >= p.number:
		return false
	default:
		r.passages[i] = p
	}
	return true
}
