package store

import (
	"io/fs"
	"maps"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
)

// full is a directory on a disk without room.
type full struct{ directory }

func (full) Create(name string) (File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: unix.ENOSPC}
}

// An agent that starts on a full disk can't vote, but it starts.
func TestAStartWithoutRoomForTheWordsReadsThemAsUnsynced(t *testing.T) {
	dir := directory(t.TempDir())
	r, _, _ := OpenRecord(dir)
	rank := election.WordRank{Term: 7, Seq: 1}
	pay := election.NamedWord{Election: "pay", Word: election.Word{Rank: rank, ID: rank, Text: "x"}}
	if err := r.Write(election.Persist{Words: []election.NamedWord{pay}, State: &election.State{Peer: "12D3KooWAn", KeepsWords: true}}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct {
		files    Files
		unsynced bool
	}{{full{dir}, true}, {dir, false}} {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		var s election.State
		var err error
		if r, s, err = OpenRecord(at.files); err != nil || s.Unsynced != at.unsynced || !maps.Equal(s.Words, map[election.Name]election.Word{"pay": pay.Word}) {
			t.Fatalf("%T: %+v, %v", at.files, s, err)
		}
	}
	pay.Word.Text, pay.Word.Rank.Seq = "y", 2
	if err := r.Write(election.Persist{Words: []election.NamedWord{pay}}); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
