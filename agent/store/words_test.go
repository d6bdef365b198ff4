package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
)

func named(e election.Name, seq uint64, text string) election.NamedWord {
	r := election.WordRank{Term: 7, Seq: seq}
	return election.NamedWord{Election: e, Word: election.Word{Rank: r, ID: r, Text: text}}
}

// worded returns a directory with the words of two elections, and these words. One of them was written twice.
func worded(t *testing.T) (string, map[election.Name]election.Word) {
	t.Helper()
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	state.KeepsWords = true
	first, second, other := named("default", 1, "first"), named("default", 2, "second"), named("pay", 1, "other")
	if err := errors.Join(s.Write(election.Persist{Words: []election.NamedWord{first}, State: &state}),
		s.Write(election.Persist{Words: []election.NamedWord{other}}), s.Write(election.Persist{Words: []election.NamedWord{second}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, map[election.Name]election.Word{"default": second.Word, "pay": other.Word}
}

func wordsIn(t *testing.T, dir string) map[election.Name]election.Word {
	t.Helper()
	s, state, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return state.Words
}

func TestWordsSurviveARestart(t *testing.T) {
	dir, want := worded(t)
	if got := wordsIn(t, dir); !maps.Equal(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	third := named("pay", 3, "third")
	if err := errors.Join(s.Write(election.Persist{Writes: 9, Words: []election.NamedWord{third}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	want["pay"] = third.Word
	if got := wordsIn(t, dir); !maps.Equal(got, want) {
		t.Errorf("after another write: %+v, want %+v", got, want)
	}
}

// A write of words alone leaves the state as it is, but counts as a write. So a start notices if the words are older
// than the state shows.
func TestWritesOfWordsCount(t *testing.T) {
	dir, _ := worded(t)
	for _, n := range []uint64{7, 9} {
		s, state, err := open(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		write := election.Persist{Writes: n, Words: []election.NamedWord{named("pay", n, "x")}}
		if n == 9 {
			state.Writes = n
			write = election.Persist{Writes: n, State: &state}
		}
		if err := errors.Join(s.Write(write), s.Close()); err != nil {
			t.Fatal(err)
		}
		s, state, err = open(t, dir)
		if err != nil || state.Writes != n {
			t.Errorf("write %d: the disk has %d, %v", n, state.Writes, err)
		}
		_ = s.Close()
	}
}

// The kernel does not repeat a sync that failed, so what a former run has appended may be only in memory.
func TestAStartWritesTheWordsToANewFile(t *testing.T) {
	dir, want := worded(t)
	path := filepath.Join(dir, "words")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.Open(path) // so that no other file gets its inode number
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	wordsIn(t, dir)
	if after, err := os.Stat(path); err != nil || os.SameFile(before, after) {
		t.Errorf("the words are in the same file, %v", err)
	}
	if got := wordsIn(t, dir); !maps.Equal(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
}

// A crash may cut the last record short at any byte. That record was never acknowledged.
func TestAWordThatWasCutShortIsNotThere(t *testing.T) {
	dir, want := worded(t)
	path := filepath.Join(dir, "words")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want["default"] = named("default", 1, "first").Word
	last := bytes.LastIndex(whole, []byte("second")) + len("second")
	if last != len(whole) {
		t.Fatalf("the log does not end with the last word, but %d bytes later", len(whole)-last)
	}
	begin := bytes.LastIndex(whole, []byte("other")) + len("other")
	for n := begin; n < len(whole); n++ {
		for _, tail := range [][]byte{nil, make([]byte, 40)} { // a file system may show zeros where nothing was written yet
			if err := os.WriteFile(path, append(bytes.Clone(whole[:n]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := wordsIn(t, dir); !maps.Equal(got, want) {
				t.Fatalf("cut to %d of %d bytes, %d zeros: %+v, want %+v", n, len(whole), len(tail), got, want)
			}
		}
	}
}

func TestWordsThatAreLostOrDamagedStopTheStart(t *testing.T) {
	for name, spoil := range map[string]func(path string, log []byte) error{
		"missing": func(path string, _ []byte) error { return os.Remove(path) },
		"empty":   func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"another agent": func(path string, log []byte) error {
			return os.WriteFile(path, bytes.Replace(log, []byte("peer-"), []byte("PEER-"), 1), 0o600)
		},
		"a bit of the first word": func(path string, log []byte) error {
			log[bytes.Index(log, []byte("first"))] ^= 1
			return os.WriteFile(path, log, 0o600)
		},
		"a bit of a later word": func(path string, log []byte) error {
			log[bytes.Index(log, []byte("other"))] ^= 1
			return os.WriteFile(path, log, 0o600)
		},
		"a bit of a length": func(path string, log []byte) error {
			log[bytes.IndexByte(log, '\n')+1] ^= 1
			return os.WriteFile(path, log, 0o600)
		},
		"a bit of the only record": func(path string, log []byte) error {
			end := bytes.LastIndex(log, []byte("first")) + len("first")
			return os.WriteFile(path, append(log[:end-1], 'T'), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := worded(t)
			path := filepath.Join(dir, "words")
			log, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(path, log); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, dir)
			_, _, err = open(t, dir)
			bad, is := errors.AsType[*store.Error](err)
			if !is || !strings.HasPrefix(bad.Path, dir) || !strings.Contains(bad.Hint, "A lost data directory") {
				t.Errorf("the start says %v", err)
			}
			if after := snapshot(t, dir); !maps.Equal(before, after) {
				t.Error("it changed what it refuses")
			}
		})
	}
}

// After a crash between the first word and the state that shows it, the word is ignored: it was never acknowledged.
func TestALogThatTheStateDoesNotNameIsNotRead(t *testing.T) {
	dir, _ := made(t)
	other, _ := worded(t)
	log, err := os.ReadFile(filepath.Join(other, "words"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "words"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := wordsIn(t, dir); len(got) != 0 {
		t.Errorf("read %+v", got)
	}
}

func TestALogOfManyWritesIsMadeSmaller(t *testing.T) {
	dir, want := worded(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	largest := int64(0)
	for seq := range uint64(90) {
		var hundred []election.NamedWord
		for i := range 100 {
			w := named(election.Name(fmt.Sprintf("job%02d", i)), seq+10, strings.Repeat("x", election.MaxWord))
			hundred, want[w.Election] = append(hundred, w), w.Word
		}
		if err := s.Write(election.Persist{Words: hundred}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "words"))
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if live := int64(100 * (election.MaxWord + 100)); largest < live || largest > 6*live {
		t.Errorf("the log had up to %d bytes for %d of words", largest, live)
	}
	if got := wordsIn(t, dir); !maps.Equal(got, want) {
		t.Error("words were lost")
	}
}

// Two agents use one data directory, as an NFS without locks allows. The second one writes a word.
func TestAnotherWriterOfWordsEndsTheWriting(t *testing.T) {
	for _, replaced := range []bool{true, false} {
		anotherWriterOfWords(t, replaced)
	}
}

func anotherWriterOfWords(t *testing.T, replaced bool) {
	dir, _ := worded(t)
	s, state, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path := filepath.Join(dir, "words")
	log, err := os.ReadFile(path)
	if err == nil && replaced {
		err = errors.Join(os.WriteFile(path+".other", log, 0o600), os.Rename(path+".other", path))
	} else if err == nil {
		err = os.WriteFile(path, append(log, "more"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []election.Persist{{State: &state}, {Words: []election.NamedWord{named("pay", 9, "mine")}}} {
		if _, taken := errors.AsType[*store.TakenError](s.Write(p)); !taken {
			t.Errorf("it writes %+v", p)
		}
	}
}

func TestW11ADroppedWordLeavesTheLogAfterTheState(t *testing.T) {
	dir, want := worded(t)
	s, state, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	dropped := election.NamedWord{Election: "default"}
	if err := s.Write(election.Persist{Words: []election.NamedWord{dropped}, State: &state}); err != nil {
		t.Fatal(err)
	}
	third := named("pay", 3, "third")
	if err := errors.Join(s.Write(election.Persist{Words: []election.NamedWord{third}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	delete(want, "default")
	want["pay"] = third.Word
	if got := wordsIn(t, dir); !maps.Equal(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	s, state, err = open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	state.KeepsWords = false
	if err := errors.Join(s.Write(election.Persist{Words: []election.NamedWord{{Election: "pay"}}, State: &state}), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := wordsIn(t, dir); len(got) != 0 {
		t.Errorf("read %+v, want none", got)
	}
}
