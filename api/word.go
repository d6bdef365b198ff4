package api

import "cmp"

// WordID identifies a word by its first writing: the term, and the number of the writing within the term.
// Without a word, the ID is zero.
type WordID struct {
	Term uint64 `json:"term"`
	Seq  uint64 `json:"seq"`
}

// Compare orders the writings of a word: by term, then by number.
func (w WordID) Compare(other WordID) int {
	return cmp.Or(cmp.Compare(w.Term, other.Term), cmp.Compare(w.Seq, other.Seq))
}

// Word is a text that an election keeps from one leader to the next: UTF-8, at most 1024 bytes.
// An empty text means that the word is being deleted.
type Word struct {
	WordID
	Text string `json:"text"`
}

// ElectionWord is the answer to GET /v1/elections/NAME/word.
type ElectionWord struct {
	Election string `json:"election"`
	Word     *Word  `json:"word"` // null: there is none
	// Authority is AuthorityLease if the leader's agent has answered, inside its lease. It is AuthorityQuorum
	// if nobody leads and a majority of the voters has answered. Then no acknowledged word is newer, but the
	// word may be one whose writer got no answer.
	Authority string `json:"authority"`
}

// WordRequest is the body of POST /v1/campaigns/ID/word.
type WordRequest struct {
	Term uint64 `json:"term"`        // the program's newest term
	If   WordID `json:"if,omitzero"` // the ID of the word that is replaced; zero: there must be none
	Text string `json:"text"`        // the new word; empty: delete the word
}

// VoterWords is the answer of one voter to another agent: the words that this voter has, sorted by election. A leader
// may have written newer ones. A word may also be of a writing that was not acknowledged.
type VoterWords struct {
	Version RosterVersion `json:"version"` // the version of the voter's roster
	Words   []VoterWord   `json:"words"`
}

// VoterWord is the word of one election as one voter has it.
type VoterWord struct {
	Election string `json:"election"`
	Word
	Written WordID `json:"written"` // the word's last writing: the newest word is the one with the highest Written
}
