package history

import (
	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
)

// WordOperation is what a program does with the word of an election: it reads the word, or it
// writes a text if the word is still the one that it names.
type WordOperation struct {
	Reads bool
	If    election.WordRank // the ID that a write names; zero: there is no word
	Text  string            // of a write; empty: it deletes the word
}

// WordResult is the answer to a WordOperation. If the answer is not known, the write happened at some
// instant between its call and its return. It replaced the word only if its If named the word of that instant.
type WordResult struct {
	Known   bool
	Changed bool          // the write was refused, because the word is another one
	Word    election.Word // the word that was read or written; if Changed, the word that was there instead
}

// register is the word of an election. The ID of a word whose write got no answer is not known
// until a program reads that word.
type register struct {
	id      election.WordRank
	text    string // empty: there is no word, or the last one was deleted
	unnamed bool
}

// is reports whether a program may read the word with this ID and text, and returns what is known
// after that read. A program reads a deleted word either as an empty text or as no word.
func (g register) is(id election.WordRank, text string) (register, bool) {
	switch {
	case g.text != text:
		return g, false
	case id == election.WordRank{}:
		return g, text == ""
	case g.unnamed:
		return register{id: id, text: text}, true
	}
	return g, g.id == id
}

// replacedBy reports whether a write that names that ID replaces the word. A program can't name an
// ID that nobody has read.
func (g register) replacedBy(named election.WordRank) bool {
	return named == election.WordRank{} && g.text == "" || named == g.id && !g.unnamed
}

// Word is the specification of an election's word: a register with compare-and-set, which begins
// with no word. No text except the empty one may be written twice. Inputs are WordOperations, outputs
// are WordResults.
func Word() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, output any) (bool, any) {
			g, in, out := state.(register), input.(WordOperation), output.(WordResult)
			switch {
			case in.Reads || out.Known && out.Changed:
				g, is := g.is(out.Word.ID, out.Word.Text)
				return is && (in.Reads || out.Word.ID != in.If), g
			case g.replacedBy(in.If):
				return true, register{id: out.Word.ID, text: in.Text, unnamed: !out.Known}
			}
			return !out.Known, g
		},
	}
}
