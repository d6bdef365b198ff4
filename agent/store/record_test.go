package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
)

// another replaces the state several times, as another agent with this directory would.
func another(t *testing.T, dir string, times int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		temp := filepath.Join(dir, "elsewhere")
		if err := errors.Join(os.WriteFile(temp, data, 0o600), os.Rename(temp, filepath.Join(dir, "state"))); err != nil {
			t.Fatal(err)
		}
	}
}

// Two agents with one identity could promise one vote to two holders. The file systems of Linux give a free inode
// number to the next file, so the test writes odd and even numbers of times.
func TestAnotherWriterEndsTheWritingForGood(t *testing.T) {
	for _, written := range []bool{false, true} {
		for times := 1; times <= 4; times++ {
			dir, state := made(t)
			s, _, err := open(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			if written {
				if err := s.Write(election.Persist{State: &state}); err != nil {
					t.Fatal(err)
				}
			}
			another(t, dir, times)
			before := snapshot(t, dir)
			for range 2 {
				var taken *store.TakenError
				if err := s.Write(election.Persist{State: &state}); !errors.As(err, &taken) || !strings.Contains(err.Error(), "doyen voters replace") {
					t.Fatalf("after %d writes by another: %v", times, err)
				}
			}
			if after := snapshot(t, dir); !reflect.DeepEqual(before, after) {
				t.Errorf("it wrote over what another has written")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A missing state shows no other writer: the directory is locked, and another agent would have left its own state.
// All promises are in memory.
func TestAStateThatWasRemovedIsWrittenAgain(t *testing.T) {
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Write(election.Persist{State: &state}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, got, err := open(t, dir)
	if err != nil || !reflect.DeepEqual(got.Grants, state.Grants) {
		t.Fatalf("%+v, %v", got, err)
	}
	s.Close()
}

// A directory that was removed may be put back, so the writes fail only until then. A directory that is made in
// its place belongs to another agent.
func TestADirectoryThatWasRemovedFailsTheWritesUntilItIsBack(t *testing.T) {
	dir, state := made(t)
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	var taken *store.TakenError
	if err := s.Write(election.Persist{State: &state}); err == nil || errors.As(err, &taken) || !strings.Contains(err.Error(), "removed") {
		t.Errorf("while it is away: %v", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(election.Persist{State: &state}); err != nil {
		t.Errorf("once it is back: %v", err)
	}
}

// forgetful is a directory whose disk fails after some syncs.
type forgetful struct {
	store.Files
	syncs int // how many syncs succeed
}

func (f *forgetful) SyncDir() error {
	if f.syncs--; f.syncs < 0 {
		return errors.New("input/output error")
	}
	return nil
}

func (f *forgetful) Open(string) (store.File, error) { return nil, os.ErrNotExist }

func TestAStartThatCantSyncIsRefused(t *testing.T) {
	_, _, err := store.OpenRecord(&forgetful{})
	var refused *store.Error
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "can't be synced") {
		t.Fatalf("got %v", err)
	}
	if _, _, err := store.OpenRecord(&forgetful{syncs: 1}); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v, want that there is no state", err)
	}
	if err := new(store.Record).Write(election.Persist{State: &election.State{}}); err == nil {
		t.Error("wrote a state of nobody")
	}
}
