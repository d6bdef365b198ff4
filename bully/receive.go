package bully

import "github.com/doyen-election/doyen/election"

// Receive handles a valid Bully message of this election, and drops every other message.
func (b *Bully) Receive(now election.Instant, f election.Field, from election.PeerID, m election.Message) election.Verdict {
	var v election.Verdict
	if from != b.self && from != "" {
		switch m := m.(type) {
		case election.BullyElection:
			if m.Election == b.election && m.Rank.Peer == from {
				b.receiveElection(now, f, from, m, &v)
			}
		case election.BullyAnswer:
			if m.Election == b.election {
				b.receiveAnswer(now, f, from, m.Round)
			}
		case election.BullyDecline:
			if m.Election == b.election {
				b.receiveDecline(from, m.Round)
			}
		case election.BullyCoordinator:
			if m.Election == b.election && m.Leader.Peer == from {
				b.receiveCoordinator(now, f, from)
			}
		}
	}
	return b.proceed(now, f, v)
}

// receiveElection compares the ranks that the two agents report about themselves. So exactly one
// of the two waits, even if their views differ.
func (b *Bully) receiveElection(now election.Instant, f election.Field, from election.PeerID, m election.BullyElection, v *election.Verdict) {
	switch {
	case f.Leads != nil:
		v.Send = append(v.Send, b.coordinator(from, *f.Leads))
	case !f.Able:
		v.Send = append(v.Send, b.decline(from, m.Round))
	case m.Rank.Above(f.Self):
		v.Send = append(v.Send, b.decline(from, m.Round))
		if holds(f, from) {
			b.waitFor(now, f, from)
		}
	default:
		v.Send = append(v.Send, election.Envelope{To: from, Message: election.BullyAnswer{Election: b.election, Round: m.Round}})
		b.remember(from, m.Round, max(f.Patience, now.Add(b.timeout)))
		if b.phase == idle {
			b.begin(now, f, v)
		}
	}
}

// receiveAnswer waits for a candidate that was asked in this round or, with round 0, for a
// better nominee. Every other Answer is late or repeated, and is ignored.
func (b *Bully) receiveAnswer(now election.Instant, f election.Field, from election.PeerID, round uint64) {
	if round == 0 {
		for _, r := range f.Ranks {
			if r.Peer == from {
				b.StandBack(now, f, r)
			}
		}
		return
	}
	if p := b.find(from); p != nil && round == b.round {
		b.waitFor(now, f, from)
	}
}

// receiveDecline ends the wait for a candidate. A Decline with round 0 takes back an Answer with round 0.
func (b *Bully) receiveDecline(from election.PeerID, round uint64) {
	p := b.find(from)
	if p == nil || round != 0 && round != b.round {
		return
	}
	if round == b.round || p.reply == answered {
		p.reply = declined
	}
}

// receiveCoordinator treats a Coordinator like an Answer. A Coordinator may be late, so it does
// not end a round: the elector calls Stop when heartbeats show which agent leads.
func (b *Bully) receiveCoordinator(now election.Instant, f election.Field, from election.PeerID) {
	if f.Able && f.Leads == nil && b.phase != idle && holds(f, from) {
		b.waitFor(now, f, from)
	}
}

func (b *Bully) decline(to election.PeerID, round uint64) election.Envelope {
	return election.Envelope{To: to, Message: election.BullyDecline{Election: b.election, Round: round}}
}
