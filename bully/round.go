package bully

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// begin starts a round. It asks all better candidates, except those that declined in the round before. If none is
// left to ask, this agent is the nominee. If no round may start now (Field.Closed), begin only stops.
func (b *Bully) begin(now election.Instant, f election.Field, v *election.Verdict) {
	if f.Closed {
		b.Stop()
		return
	}
	b.peers = slices.DeleteFunc(b.peers, func(p peer) bool { return p.reply != declined })
	b.phase, b.until, b.blind = asking, now.Add(b.timeout), false
	b.round++
	b.ask(f, v)
	if !b.any(none) {
		b.nominate(v)
	}
}

func (b *Bully) ask(f election.Field, v *election.Verdict) {
	for _, r := range f.Ranks {
		if r.Peer != b.self && r.Above(f.Self) && b.find(r.Peer) == nil {
			b.peers = append(b.peers, peer{id: r.Peer, reply: none})
			ask := election.BullyElection{Election: b.election, Round: b.round, Rank: f.Self}
			v.Send = append(v.Send, election.Envelope{To: r.Peer, Message: ask})
		}
	}
}

func (b *Bully) nominate(v *election.Verdict) {
	b.phase = nominated
	v.Nominee = true
}

// waitFor waits for that peer until f.Patience, but at least for the answer timeout. Without
// that minimum, one round after another would start after f.Patience.
func (b *Bully) waitFor(now election.Instant, f election.Field, id election.PeerID) {
	if b.phase == nominated {
		return
	}
	switch p := b.find(id); {
	case p != nil && p.reply != none:
		return // it is counted already, or it has declined
	case p != nil:
		p.reply = answered
	case holds(f, id):
		b.peers = append(b.peers, peer{id: id, reply: answered})
	case b.blind:
		return
	default:
		b.blind = true
	}
	until := max(f.Patience, now.Add(b.timeout))
	if b.phase == waiting {
		until = max(until, b.until)
	}
	b.phase, b.until = waiting, until
}

// proceed does what is due, and completes the verdict.
func (b *Bully) proceed(now election.Instant, f election.Field, v election.Verdict) election.Verdict {
	b.forget(now, f)
	b.excuse(f, &v)
	switch {
	case f.Leads != nil, !f.Able && b.phase != nominated: // the elector ends the bid of a nominee
		b.Stop()
	case b.phase == asking:
		if now < b.until {
			b.ask(f, &v) // the candidates that have joined since
		}
		if now >= b.until || !b.any(none) {
			b.nominate(&v)
		}
	case b.phase == waiting && now >= b.until:
		b.peers = nil // so that begin also asks the candidates that declined
		b.begin(now, f, &v)
	case b.phase == waiting && !b.blind && !b.any(answered):
		b.begin(now, f, &v) // all candidates for which it waited are gone or have declined
	}
	v.WakeAt = election.Never
	if b.phase == asking || b.phase == waiting {
		v.WakeAt = b.until
	}
	return v
}

// forget drops candidates that have left the field, and candidates whose wait for this agent has ended.
func (b *Bully) forget(now election.Instant, f election.Field) {
	if len(b.peers) == 0 && len(b.deferring) == 0 {
		return
	}
	here := make(map[election.PeerID]bool, len(f.Ranks))
	for _, r := range f.Ranks {
		here[r.Peer] = true
	}
	b.peers = slices.DeleteFunc(b.peers, func(p peer) bool { return !here[p.id] })
	b.deferring = slices.DeleteFunc(b.deferring, func(d deferring) bool { return now >= d.until || !here[d.id] })
}

// excuse sends a Decline to the candidates that wait for this agent, if it can't lead any more.
func (b *Bully) excuse(f election.Field, v *election.Verdict) {
	if f.Leads == nil && f.Able {
		return
	}
	if f.Leads == nil {
		for _, d := range b.deferring {
			v.Send = append(v.Send, b.decline(d.id, d.round))
		}
	}
	b.deferring = nil
}

func (b *Bully) defers(id election.PeerID) bool {
	return slices.ContainsFunc(b.deferring, func(d deferring) bool { return d.id == id })
}

func (b *Bully) remember(id election.PeerID, round uint64, until election.Instant) {
	b.deferring = slices.DeleteFunc(b.deferring, func(d deferring) bool { return d.id == id })
	b.deferring = append(b.deferring, deferring{id: id, round: round, until: until})
}
