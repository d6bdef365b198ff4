package election

import "cmp"

// MaxWord is how many bytes the text of a word may have.
const MaxWord = 1 << 10

// WordRank orders the writings of a word: by term, then by their order within the term. It is the ballot in
// the protocol of Lamport 1998.
type WordRank struct {
	Term Term   `cbor:"1,keyasint"`
	Seq  uint64 `cbor:"2,keyasint"` // above Config.FirstNumber of the life that writes, so that no two lives use the same number
}

func (r WordRank) Compare(s WordRank) int {
	return cmp.Or(cmp.Compare(r.Term, s.Term), cmp.Compare(r.Seq, s.Seq))
}

// Word is a text that an election keeps from one leader to the next. The zero Word means that there is none.
type Word struct {
	Rank WordRank `cbor:"1,keyasint"`           // of its last writing: each new leader writes it again (W4)
	ID   WordRank `cbor:"2,keyasint"`           // the rank of its first writing; a write names the ID that it replaces (W6)
	Text string   `cbor:"3,keyasint,omitempty"` // UTF-8, at most MaxWord bytes; empty: the word is being deleted (W11)
}

// Newer reports whether the word is of a later writing.
func (w Word) Newer(than Word) bool { return w.Rank.Compare(than.Rank) > 0 }

// NamedWord is the word of one election.
type NamedWord struct {
	Election Name `cbor:"1,keyasint"`
	Word     Word `cbor:"2,keyasint"`
}

// WordsHeld is which words a voter has when it accepts a roster.
type WordsHeld uint8

const (
	NoWords  WordsHeld = iota // also if the agent's version does not know words
	HasWords                  // it may lack the newest ones
	CaughtUp                  // it has the newest words that majorities of both halves have with that roster (W9)
)

type (
	// WordsWanted asks a voter for its words, in the order of the elections' names, from the first name that follows After.
	WordsWanted struct {
		Version Version `cbor:"1,keyasint"`
		After   Name    `cbor:"2,keyasint,omitempty"`
	}
	// Words is one page of a voter's words, which it has on disk with that roster.
	Words struct {
		Version Version     `cbor:"1,keyasint"`
		After   Name        `cbor:"2,keyasint,omitempty"` // as in the request
		Words   []NamedWord `cbor:"3,keyasint,omitempty"` // sorted by election
		More    bool        `cbor:"4,keyasint,omitempty"` // there are more words after these
	}
	// WordWrite asks a voter to keep a word. The term is that of the word's rank (W1).
	WordWrite struct {
		Election Name    `cbor:"1,keyasint"`
		Holder   Holder  `cbor:"2,keyasint"`
		Version  Version `cbor:"3,keyasint"`
		Word     Word    `cbor:"4,keyasint"`
	}
	// WordAck reports that the sender, a voter with that roster version, has the word on disk (W2).
	WordAck struct {
		Election Name     `cbor:"1,keyasint"`
		Rank     WordRank `cbor:"2,keyasint"`
		Version  Version  `cbor:"3,keyasint"`
	}
)
