package history

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
)

// TestTheJudgeWantsOneOrderOfAllWords shows which histories of a word have such an order (G8).
func TestTheJudgeWantsOneOrderOfAllWords(t *testing.T) {
	word := func(n uint64, text string) election.Word {
		return election.Word{ID: election.WordRank{Term: 1, Seq: n}, Text: text}
	}
	none, a, b, empty := election.Word{}, word(1, "a"), word(2, "b"), word(3, "")
	op := func(call, end int64, in WordOperation, out WordResult) porcupine.Operation {
		return porcupine.Operation{Input: in, Call: call, Output: out, Return: end}
	}
	read := func(at int64, w election.Word) porcupine.Operation {
		return op(at, at, WordOperation{Reads: true}, WordResult{Known: true, Word: w})
	}
	write := func(at int64, replaces, w election.Word) porcupine.Operation {
		return op(at, at+1, WordOperation{If: replaces.ID, Text: w.Text}, WordResult{Known: true, Word: w})
	}
	changed := func(at int64, named, is election.Word) porcupine.Operation {
		return op(at, at+1, WordOperation{If: named.ID, Text: "x"}, WordResult{Known: true, Changed: true, Word: is})
	}
	unknown := func(call, end int64, replaces election.Word, text string) porcupine.Operation {
		return op(call, end, WordOperation{If: replaces.ID, Text: text}, WordResult{})
	}
	for name, c := range map[string]struct {
		operations []porcupine.Operation
		want       bool
	}{
		"one after the other":           {[]porcupine.Operation{write(0, none, a), read(2, a), write(3, a, b), changed(5, a, b)}, true},
		"a word is lost":                {[]porcupine.Operation{write(0, none, a), write(2, a, b), read(4, a)}, false},
		"all words are lost":            {[]porcupine.Operation{write(0, none, a), read(2, none)}, false},
		"two replace one":               {[]porcupine.Operation{write(0, none, a), write(2, none, b)}, false},
		"the word has not changed":      {[]porcupine.Operation{write(0, none, a), changed(2, a, a)}, false},
		"an unknown one happens late":   {[]porcupine.Operation{write(0, none, a), unknown(2, 99, a, "b"), read(3, a), read(4, b)}, true},
		"or never":                      {[]porcupine.Operation{write(0, none, a), unknown(2, 99, a, "b"), read(3, a)}, true},
		"but is not taken back":         {[]porcupine.Operation{write(0, none, a), unknown(2, 99, a, "b"), read(3, b), read(4, a)}, false},
		"nor does it replace another":   {[]porcupine.Operation{write(0, none, a), unknown(2, 99, none, "b"), read(3, b)}, false},
		"a deleted word may be kept":    {[]porcupine.Operation{write(0, none, a), write(2, a, empty), read(4, empty)}, true},
		"or forgotten":                  {[]porcupine.Operation{write(0, none, a), write(2, a, empty), read(4, none), write(5, none, b)}, true},
		"but is not back":               {[]porcupine.Operation{write(0, none, a), write(2, a, empty), read(4, a)}, false},
		"a deletion may be unknown too": {[]porcupine.Operation{write(0, none, a), unknown(2, 99, a, ""), read(3, a), read(4, empty), read(5, none)}, true},
		"nobody deleted it":             {[]porcupine.Operation{write(0, none, a), read(2, empty)}, false},
	} {
		if got := porcupine.CheckOperations(Word(), c.operations); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
