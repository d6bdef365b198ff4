package store

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
)

// Record is the state file, which holds an agent's promises. It is used by one
// goroutine at a time.
//
// Invariant: last is the file that had the state's name when this agent last read or wrote
// the state. It stays open, so that no other file gets its inode number.
type Record struct {
	files Files
	last  File
	taken error // another process wrote the state: nothing is written any more
}

// TakenError means that another process writes to the data directory of this agent. Both
// take the promises there for their own, and neither knows what the other has promised
// since.
type TakenError struct{}

func (*TakenError) Error() string {
	return "another process wrote the state file since this agent last did: two agents use this data directory, or a copy replaced it. " +
		"This agent grants no votes and leads nothing until it is restarted. " +
		"Stop every agent that uses this directory, move the directory away, start one agent with a new identity, and run `doyen voters replace` for it on a voter"
}

// OpenRecord makes durable what is there, and reads the state. If there is no state, the
// error matches fs.ErrNotExist, and Write makes one.
func OpenRecord(files Files) (*Record, election.State, error) {
	r := &Record{files: files}
	if err := syncFound(files, identityFile, stateFile); err != nil {
		return r, election.State{}, err
	}
	f, err := files.Open(stateFile)
	if err != nil {
		return r, election.State{}, err
	}
	data, err := readAll(f, stateFile, codec.MaxState+1)
	if err == nil {
		var state election.State
		if state, err = decodeState(data); err == nil {
			r.last = f
			return r, state, nil
		}
	}
	return r, election.State{}, errors.Join(err, f.Close())
}

func decodeState(data []byte) (election.State, error) {
	state, err := codec.DecodeState(data)
	if err == nil {
		return state, nil
	}
	hint := "restore it only from a copy that is not older; else move the whole directory away, start with a new identity, " +
		"and replace this voter by `doyen voters replace`: docs/operations.md, \"A lost data directory\""
	var newer *codec.NewerStateError
	var foreign *codec.ForeignStateError
	switch {
	case errors.As(err, &newer):
		hint = "nothing was changed"
	case errors.As(err, &foreign):
		hint = "nothing was changed; " + moveAway
	}
	return election.State{}, &Error{Path: stateFile, Problem: err.Error(), Hint: hint, Err: err}
}

// Write makes the state durable. After an error it may or may not be on disk.
// Once another process wrote there, every write is a *TakenError.
func (r *Record) Write(state election.State) error {
	data, err := codec.EncodeState(state)
	if err != nil {
		return err
	}
	if err := r.ours(); err != nil {
		return err
	}
	f, err := replaceFile(r.files, stateFile, data)
	if f != nil {
		r.keep(f)
	}
	if err != nil {
		return err
	}
	return r.ours() // another process that wrote at the same time may have checked before this write
}

// ours returns an error if another process has put a state in place. A missing state does
// not mean that: another writer would have left its own. Then the state is written again
// from memory, which has every promise.
func (r *Record) ours() error {
	if r.taken != nil || r.last == nil {
		return r.taken
	}
	switch same, err := r.files.Names(stateFile, r.last); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("check the state file: %w", err)
	case !same:
		r.taken = &TakenError{}
	}
	return r.taken
}

func (r *Record) keep(f File) {
	_ = r.Close() // the old file was open only to keep its inode number
	r.last = f
}

// Close closes the state file.
func (r *Record) Close() error {
	if r.last == nil {
		return nil
	}
	f := r.last
	r.last = nil
	return f.Close()
}
