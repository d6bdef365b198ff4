package codec

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// WrittenWords are the words of several elections that are written to the disk together.
type WrittenWords struct {
	Writes uint64               `cbor:"1,keyasint"` // as in election.Persist
	Words  []election.NamedWord `cbor:"2,keyasint"`
}

// EncodeWords encodes words. It refuses everything that DecodeWords would refuse.
func EncodeWords(w WrittenWords) ([]byte, error) {
	if err := namedWords(w.Words); err != nil {
		return nil, fmt.Errorf("encode words: %w", err)
	}
	data, err := states.Marshal(w)
	return data, wrap.Error(err, "encode words")
}

// DecodeWords returns the words that were given to EncodeWords.
func DecodeWords(data []byte) (w WrittenWords, err error) {
	if err := states.Unmarshal(data, &w); err != nil {
		return w, err
	}
	return w, namedWords(w.Words)
}

func namedWords(words []election.NamedWord) error {
	for _, w := range words {
		if err := cmp.Or(electionName(w.Election), word(w.Word)); err != nil {
			return fmt.Errorf("election %.64q: %w", w.Election, err)
		}
	}
	return nil
}

// word refuses the zero word, which means that no word is given.
func word(w election.Word) error {
	switch {
	case len(w.Text) > election.MaxWord || !utf8.ValidString(w.Text):
		return fmt.Errorf("%d bytes are over the limit of %d, or not UTF-8", len(w.Text), election.MaxWord)
	case w.ID.Compare(w.Rank) > 0:
		return fmt.Errorf("its ID %v is above its rank %v", w.ID, w.Rank)
	}
	return cmp.Or(term("rank", w.Rank.Term), term("ID", w.ID.Term))
}

// maybeWord accepts the zero word.
func maybeWord(w election.Word) error {
	if w == (election.Word{}) {
		return nil
	}
	return word(w)
}
