package codec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/golden"
)

func sampleWord() election.Word {
	return election.Word{Rank: election.WordRank{Term: 12, Seq: 3<<40 + 1}, ID: election.WordRank{Term: 11, Seq: 2<<40 + 7}, Text: "paid up to 2026-11"}
}

func TestWordsSurviveTheDiskUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t}
		written := WrittenWords{Writes: rapid.Uint64().Draw(t, "writes")}
		for range rapid.IntRange(1, 3).Draw(t, "words") {
			written.Words = append(written.Words, election.NamedWord{Election: d.name(), Word: d.word()})
		}
		data, err := EncodeWords(written)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := DecodeWords(data); err != nil || !reflect.DeepEqual(read, written) {
			t.Fatalf("read %#v, %v; written %#v", read, err, written)
		}
	})
}

func TestTheFormatOfWordsIsWhatItWas(t *testing.T) {
	words, err := EncodeWords(WrittenWords{Writes: 5, Words: []election.NamedWord{{Election: "pay", Word: sampleWord()}}})
	if err != nil {
		t.Fatal(err)
	}
	grant, err := EncodeMessage(election.VoteGrant{Election: "pay", Term: 12, Holder: election.Holder{Peer: "12D3KooWAnn", Lineage: 0xa11}, Word: sampleWord()})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "level3.golden", fmt.Sprintf("words %x\nVoteGrant %x\n", words, grant))
}

func TestWordsAreBounded(t *testing.T) {
	for name, spoil := range map[string]func(*election.NamedWord){
		"name":         func(w *election.NamedWord) { w.Election = "Pay" },
		"too long":     func(w *election.NamedWord) { w.Word.Text = strings.Repeat("x", election.MaxWord+1) },
		"not UTF-8":    func(w *election.NamedWord) { w.Word.Text = "\xff" },
		"no rank":      func(w *election.NamedWord) { w.Word.Rank = election.WordRank{} },
		"no ID":        func(w *election.NamedWord) { w.Word.ID = election.WordRank{} },
		"ID above":     func(w *election.NamedWord) { w.Word.ID.Term = 13 },
		"term too big": func(w *election.NamedWord) { w.Word.Rank.Term = election.MaxTerm + 1 },
	} {
		w := election.NamedWord{Election: "pay", Word: sampleWord()}
		spoil(&w)
		if _, err := EncodeWords(WrittenWords{Words: []election.NamedWord{w}}); err == nil {
			t.Errorf("%s: encoded for the disk", name)
		}
		m := election.WordWrite{Election: w.Election, Holder: election.Holder{Peer: "p"}, Word: w.Word}
		if _, err := EncodeMessage(m); err == nil {
			t.Errorf("%s: sent", name)
		}
	}
}
