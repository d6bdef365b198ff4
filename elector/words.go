package elector

import "github.com/doyen-election/doyen/election"

// writeWord passes a program's request to the election that this agent leads.
func (e *Elector) writeWord(in election.WriteWord) {
	c := e.held(in.Election)
	if c == nil {
		e.reply(in.Request, &election.Refusal{Why: election.DeniedNotLeader, Election: in.Election})
		return
	}
	v, refusal := c.WriteWord(c, in, olderForWords(e))
	e.carry(c, v)
	if refusal != nil {
		e.reply(in.Request, refusal)
	}
}

// olderForWords is why no first word may be written: an agent's version of Doyen does not know words, or a
// voter is not connected, so its version is not known. If there are words already, this was checked
// before the first one was written.
func olderForWords(e *Elector) *election.Refusal {
	if e.ledger.State().KeepsWords || !e.cfg.Quorum {
		return nil
	}
	for _, v := range e.roster.All() {
		if v.Peer != e.cfg.Self.Peer && !e.peers.has(v.Peer) {
			return &election.Refusal{Why: election.DeniedFirstWord, Agent: v.Name}
		}
	}
	for i, p := range e.peers.rows {
		if p.Level < election.LevelWords {
			return &election.Refusal{Why: election.DeniedOlderVersion, Agent: e.nameOf(e.peers.keys[i])}
		}
	}
	return nil
}

// catchUp asks the other voters for their words, while this agent's voter has to catch up (W9). It
// returns when to ask again.
func (e *Elector) catchUp() election.Instant {
	wants, wake := e.voter.Wants(e.now)
	e.sendAll(wants)
	return wake
}
