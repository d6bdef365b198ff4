package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
)

// Record is the state file, which holds an agent's promises. Only one goroutine at a time may use
// it.
//
// Invariant: last is the file that had the state's name when this agent last read or wrote
// the state. It stays open, so that no other file gets its inode number.
type Record struct {
	files Files
	last  File
	words words
	taken error // nil, or the error that another process wrote the state: nothing is written any more
}

// TakenError means that another process writes to the data directory of this agent. Both treat the
// promises there as their own, and neither knows what the other one has promised since.
type TakenError struct{}

func (*TakenError) Error() string {
	return "another process wrote the state file since this agent last did: two agents use this data directory, or a copy replaced it. " +
		"This agent grants no votes and leads nothing until it is restarted. " +
		"Stop every agent that uses this directory, move the directory away, start one agent with a new identity, and run `doyen voters replace` for it on a voter"
}

// OpenRecord makes the state that it finds durable, and reads it. If there is none, the error
// matches fs.ErrNotExist, and the first Write creates it.
func OpenRecord(files Files) (*Record, election.State, error) {
	r := &Record{files: files, words: words{files: files, words: map[election.Name]election.Word{}}}
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
			err = r.words.open(&state)
		}
		if err == nil {
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

// Write makes the changed words durable, then the state, if there is one. Then it drops the zero words (W11).
// After an error both may or may not be on disk. Once another process has written the state, every Write returns a
// *TakenError.
func (r *Record) Write(p election.Persist) error {
	if err := r.ours(); err != nil {
		return err
	}
	if p.State != nil {
		r.words.peer = p.State.Peer
	}
	kept := slices.DeleteFunc(slices.Clone(p.Words), func(w election.NamedWord) bool { return w.Word == (election.Word{}) })
	if len(kept) > 0 {
		if err := r.words.write(p.Writes, kept); err != nil {
			return err
		}
	}
	if p.State == nil {
		return r.ours()
	}
	data, err := codec.EncodeState(*p.State)
	if err != nil {
		return err
	}
	f, err := replaceFile(r.files, stateFile, data)
	if f != nil {
		r.keep(f)
	}
	if err != nil {
		return err
	}
	r.words.drop(p)
	return r.ours() // a process that wrote at the same time may have checked before this write
}

// ours returns an error if another process has replaced the state or the words. A missing file is not an error: it
// shows no other writer, which would have left a file. The next write puts all promises on disk again, from memory.
func (r *Record) ours() error {
	if r.taken != nil || r.last == nil {
		return r.taken
	}
	same, err := r.files.Names(stateFile, r.last)
	if errors.Is(err, fs.ErrNotExist) {
		same, err = true, nil
	}
	words, wordsErr := r.words.ours()
	if err := errors.Join(err, wordsErr); err != nil {
		return fmt.Errorf("check the state file and the words: %w", err)
	}
	if !same || !words {
		r.taken = &TakenError{}
	}
	return r.taken
}

func (r *Record) keep(f File) {
	if r.last != nil {
		_ = r.last.Close() // the old file was open only to keep its inode number
	}
	r.last = f
}

// Close closes the files.
func (r *Record) Close() error {
	err := r.words.close()
	if r.last != nil {
		err = errors.Join(err, r.last.Close())
		r.last = nil
	}
	return err
}
