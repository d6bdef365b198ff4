package quorum

import (
	"cmp"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Keep handles a holder's request to keep a word.
func (v *Voter) Keep(now election.Instant, from election.PeerID, m election.WordWrite) {
	if m.Holder.Peer == from && !v.barred {
		v.receive(now, received{from: from, election: m.Election, message: m, at: now})
	}
}

// Words returns the words that this voter has in memory, of one election or, if its name is empty, of all. An agent
// that is not a voter gets no words and the zero version.
func (v *Voter) Words(of election.Name) election.Words {
	if v.barred || !v.roster.Has(v.cfg.Self.Peer) {
		return election.Words{}
	}
	words := v.ledger.Words()
	if of != "" {
		words = slices.DeleteFunc(words, func(w election.NamedWord) bool { return w.Election != of })
	}
	return election.Words{Version: v.roster.Version, Words: words}
}

// keep takes the word if its sender holds this voter's grant and this voter has no newer word (W1). A
// word that is on disk already is acknowledged again. Other requests get no answer: the holder
// repeats them, and learns from nacks if it can't go on leading.
func (v *Voter) keep(from election.PeerID, m election.WordWrite) {
	g, own := v.ledger.State().Grant(m.Election), v.ledger.Word(m.Election)
	switch {
	case !v.roster.Has(v.cfg.Self.Peer), v.roster.Version != m.Version, m.Word.Rank.Term <= v.roster.Floor,
		g.Holder != m.Holder, g.Term != m.Word.Rank.Term, own.Newer(m.Word),
		v.ledger.Failing() && own.Rank != m.Word.Rank,
		own.Rank == m.Word.Rank && v.ledger.altered[m.Election] != 0: // a start found it unsynced, and it is not written yet
		return
	}
	ack := election.Envelope{To: from, Message: election.WordAck{Election: m.Election, Rank: m.Word.Rank, Version: m.Version}}
	if own.Rank == m.Word.Rank {
		v.ledger.Send(ack)
		return
	}
	v.keeping[m.Election] = v.ledger.KeepWord(m.Election, m.Word)
	v.ledger.WhenDurable(v.keeping[m.Election], ack)
}

// dropWrites drops the WordWrites that wait, because another one has arrived. If a dropped word was
// newer, its holder sends it again.
func (v *Voter) dropWrites(e election.Name) {
	v.setWaiting(e, slices.DeleteFunc(v.waiting[e], func(r received) bool {
		_, writes := r.message.(election.WordWrite)
		return writes
	}))
}

// Register is the holder's side of one election's word, in one term: a register of Paxos (Lamport
// 1998) whose ballot is the term. It reads the word from the votes for the term and writes the word
// again. Only then may the word be shown or replaced (W4).
//
// Invariant: the maps read and has hold only voters that answered at the roster's version (R10).
// Once the register is ready, a majority has acknowledged the word, or the word is zero.
type Register struct {
	term   election.Term
	last   uint64 // the number of the last writing
	roster *election.Roster
	read   map[election.PeerID]election.Word // voter → the word in its vote; nil once a majority's votes were read
	ready  bool
	word   election.Word
	next   election.Word            // being written; zero: nothing is
	has    map[election.PeerID]bool // voters that have the newest word on disk: the one being written, if there is one
}

// NewRegister returns the register of a term. It numbers its writings from `after` + 1: no
// former life has used such a high number in the term (W7).
func NewRegister(t election.Term, after uint64, r *election.Roster) *Register {
	return &Register{term: t, last: after, roster: r, read: map[election.PeerID]election.Word{}, has: map[election.PeerID]bool{}}
}

// Ready reports whether the word is known and may be replaced.
func (r *Register) Ready() bool { return r.ready }

// Word is the word that a majority has acknowledged; zero: there is none. The result is valid once
// the register is ready.
func (r *Register) Word() election.Word { return r.word }

// Reading reports whether votes are still missing: those read so far are not from a majority.
func (r *Register) Reading() bool { return r.read != nil }

// Vote reads the word in a vote that answers this life's request for the term.
func (r *Register) Vote(from election.PeerID, v election.Version, w election.Word) {
	if r.read == nil || v != r.roster.Version || !r.roster.Has(from) {
		return
	}
	r.read[from] = w
	if !Confirmed(r.roster, func(id election.PeerID) bool { _, is := r.read[id]; return is }) {
		return
	}
	newest := slices.MaxFunc(slices.Collect(maps.Values(r.read)), func(a, b election.Word) int { return a.Rank.Compare(b.Rank) })
	r.read = nil
	if newest == (election.Word{}) {
		r.ready = true
		return
	}
	r.write(newest)
}

// write begins to write the word, with a new rank.
func (r *Register) write(w election.Word) {
	r.last++
	w.Rank = election.WordRank{Term: r.term, Seq: r.last}
	if w.ID == (election.WordRank{}) {
		w.ID = w.Rank
	}
	r.next = w
	clear(r.has)
}

// Replace begins to write a new text. It may be called only if the register is ready and no writing is in
// progress. It returns the rank of the writing, which is also the ID of the new word.
func (r *Register) Replace(text string) election.WordRank {
	r.write(election.Word{Text: text})
	return r.next.ID
}

// Writing is the word that is being written; zero: none is.
func (r *Register) Writing() election.Word { return r.next }

// Ack counts a voter that has the word on disk. When a majority has it on disk, the word counts.
func (r *Register) Ack(from election.PeerID, m election.WordAck) {
	sent := cmp.Or(r.next, r.word)
	if m.Rank != sent.Rank || m.Version != r.roster.Version || !r.roster.Has(from) {
		return
	}
	r.has[from] = true
	if r.next != (election.Word{}) && Confirmed(r.roster, r.Has) {
		r.word, r.next, r.ready = r.next, election.Word{}, true
	}
}

// Has reports whether the voter has the newest word on disk.
func (r *Register) Has(voter election.PeerID) bool { return r.has[voter] }

// Deleted reports whether all voters of a stable roster have the empty word on disk. Then no voter
// has an older word, and they may forget the election (W11). missing is a voter that lacks the empty word.
func (r *Register) Deleted() (deleted bool, missing string) {
	if !r.ready || r.next != (election.Word{}) || r.word.Text != "" || r.word.Rank.Term != r.term || r.roster.Joint() {
		return false, ""
	}
	for _, v := range r.roster.All() {
		if !r.has[v.Peer] {
			return false, v.Name
		}
	}
	return true, ""
}

// Outstanding is the word to send to each voter that does not have it yet; zero: nothing is to be sent.
func (r *Register) Outstanding() election.Word {
	newest := cmp.Or(r.next, r.word)
	if newest.Rank.Term != r.term {
		return election.Word{}
	}
	return newest
}

// Reroster continues under a newer roster: from now on only answers at that roster's version count.
func (r *Register) Reroster(roster *election.Roster) {
	r.roster = roster
	clear(r.read)
	clear(r.has)
}
