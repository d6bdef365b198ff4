package contest

import (
	"time"
	"unicode/utf8"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// An elected agent reads the election's word from its votes, and writes the word again before its
// programs are notified that they lead. After that, no earlier writing whose outcome is unknown can
// show up (W4). A new word is written in the same way.

// wording is a register, and what was sent to the voters about it.
type wording struct {
	*quorum.Register
	sent     election.WordRank // the writing that was sent last
	resendAt election.Instant
	every    time.Duration // between two sends; it grows, for voters that can't write
}

// order is a program's request to replace the word, which is being carried out.
type order struct {
	election.WriteWord
	at  election.WordRank // the writing that carries it out; zero: it has not begun
	due election.Instant  // until when a deletion waits for all voters

	unready *election.Refusal
}

// newWording returns the register of a term; nil in the roster election, which has no word.
func (c *Contest) newWording(t election.Term, r *election.Roster) *wording {
	if c.name == election.RosterElection {
		return nil
	}
	return &wording{Register: quorum.NewRegister(t, c.cfg.FirstNumber(), r)}
}

// settled reports whether the word allows the agent to lead: the word is known, or the election can't have one.
func (w *wording) settled() bool { return w == nil || w.Ready() }

func (w *wording) vote(from election.PeerID, m election.VoteGrant) {
	if w != nil {
		w.Vote(from, m.Version, m.Word)
	}
}

func (w *wording) reroster(r *election.Roster) {
	if w != nil {
		w.Register.Reroster(r)
		w.resendAt, w.every = 0, 0
	}
}

// send sends the word to the voters that do not have it, until all that can be reached have it (W5).
func (w *wording) send(s *step, c *Contest) {
	if w == nil {
		return
	}
	word := w.Outstanding()
	if word == (election.Word{}) {
		return
	}
	due := w.sent != word.Rank || s.now >= w.resendAt
	if w.sent != word.Rank {
		w.every = 0
	}
	if due {
		w.every = min(max(2*w.every, c.cfg.Heartbeat), 8*c.cfg.Heartbeat)
	}
	for _, v := range s.roster.All() {
		if w.Has(v.Peer) || !s.Reachable(v.Peer) {
			continue
		}
		if due {
			w.sent, w.resendAt = word.Rank, s.now.Add(w.every)
			s.send(v.Peer, election.WordWrite{Election: c.name, Holder: c.cfg.Self, Version: s.roster.Version, Word: word})
		}
		s.wake(w.resendAt)
	}
}

// WordKept counts a voter that has the word on disk.
func (c *Contest) WordKept(f Facts, from election.PeerID, m election.WordAck) Verdict {
	s := new(step).begin(c, f)
	if c.bid != nil && c.bid.word != nil {
		c.bid.word.Ack(from, m)
	}
	if c.held != nil && c.held.word != nil {
		c.held.word.Ack(from, m)
	}
	return s.out
}

// WriteWord begins to replace the word. Without a refusal, the reply follows in a later verdict. unready is the
// refusal to reply with if the election has no word yet; nil: a first one may be written.
func (c *Contest) WriteWord(f Facts, in election.WriteWord, unready *election.Refusal) (Verdict, *election.Refusal) {
	s := new(step).begin(c, f)
	switch {
	case !c.Claimable() || c.held.term != in.Term:
		return s.out, &election.Refusal{Why: election.DeniedNotLeader, Election: c.name}
	case c.held.word == nil:
		return s.out, &election.Refusal{Why: election.DeniedNoWords, Election: c.name}
	case len(in.Text) > election.MaxWord || !utf8.ValidString(in.Text):
		return s.out, &election.Refusal{Why: election.DeniedWordText, Election: c.name}
	case c.order != nil:
		return s.out, &election.Refusal{Why: election.DeniedWordBusy, Election: c.name}
	}
	c.order = &order{WriteWord: in, unready: unready}
	return s.out, nil
}

// ReadWord makes Advance reply with the word once it is known. A leader that has the term from a former
// life reads it first (W7).
func (c *Contest) ReadWord(request election.RequestID) { c.readers = append(c.readers, request) }

// Word is the word of the term that this agent leads; zero: it is not known, or there is none.
func (c *Contest) Word() election.Word {
	if c.held == nil || c.held.word == nil {
		return election.Word{}
	}
	return c.held.word.Word()
}

// advanceWord reads, writes again and replaces the word of the term that this agent leads.
func (c *Contest) advanceWord(s *step) {
	w, o := c.held.word, c.order
	if w == nil || s.roster == nil || !c.Claimable() {
		return
	}
	if w.Reading() && (len(c.readers) > 0 || o != nil) && c.held.term > s.roster.Floor {
		if s.now >= w.resendAt {
			w.resendAt = s.now.Add(c.cfg.Heartbeat)
			s.sendVoters(c.request(s, c.held.lease))
		}
		s.wake(w.resendAt)
	}
	if o != nil && w.Ready() && w.Writing() == (election.Word{}) {
		switch {
		case o.at != (election.WordRank{}) && w.Word().ID == o.at:
			switch deleted, missing := w.Deleted(); {
			case o.Text != "", deleted:
				c.reply(s, nil)
			case s.now >= o.due:
				c.reply(s, &election.Refusal{Why: election.DeniedWordRemains, Election: c.name, Agent: missing})
			default:
				s.wake(o.due)
			}
		case w.Word() == (election.Word{}) && o.unready != nil:
			c.reply(s, o.unready)
		case w.Word().ID != o.If:
			c.reply(s, &election.Refusal{Why: election.DeniedWordChanged, Election: c.name})
		default: // no writing has begun, or the votes for this term lack the one that began in a former term
			o.at, o.due = w.Replace(o.Text), s.now.Add(c.cfg.Lease)
		}
	}
	w.send(s, c)
}

func (c *Contest) reply(s *step, refusal *election.Refusal) {
	s.out.Replies = append(s.out.Replies, election.Reply{Request: c.order.Request, Refusal: refusal, Word: c.Word()})
	c.order = nil
}

// endOrder replies to a request that can't be carried out any more. A write that had
// begun may still count: that is known only when the next leader has written the word again (W5).
func (c *Contest) endOrder(s *step) {
	switch {
	case c.order == nil || c.Claimable():
	case c.order.at != (election.WordRank{}):
		c.reply(s, &election.Refusal{Why: election.DeniedWordUnknown, Election: c.name})
	default:
		c.reply(s, &election.Refusal{Why: election.DeniedNotLeader, Election: c.name})
	}
}

// answerReaders replies to the programs that want to read the word, once it is known.
func (c *Contest) answerReaders(s *step) {
	var r election.Reply
	if c.Role() != Leader || c.held.word == nil {
		r.Refusal = &election.Refusal{Why: election.DeniedNotLeader, Election: c.name}
	} else if r.Word = c.Word(); !c.held.word.Ready() {
		return
	}
	for _, r.Request = range c.readers {
		s.out.Replies = append(s.out.Replies, r)
	}
	c.readers = nil
}
