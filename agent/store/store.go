// Package store keeps what an agent must not forget, its identity and its promises, in a directory
// that only one agent at a time may use.
//
// It guarantees that when Write returns no error, the state is on disk. After a crash at any point
// the disk has the old state or the new one, never a mixture. If the promises are lost, damaged, of
// another identity or of a newer version, the directory is refused and not changed, and the error
// names what to do. The package never silently creates again what is missing.
//
// It does not protect against a disk that ignores fsync. Nor does it protect against a directory
// that was restored from an old copy: promises made since are lost, and nothing on the disk shows
// that. Only one goroutine at a time may write.
package store

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

const (
	lockFile     = "lock"
	identityFile = "identity.key"
	stateFile    = "state"
	tempSuffix   = ".new"

	moveAway = "move it away or use another --data-dir"
)

// Error is why a data directory can't be used, and what the operator should do.
type Error struct {
	Path    string
	Problem string
	Hint    string
	Err     error // the cause, if a caller may want to match it; nil: there is none to match
}

func (e *Error) Error() string {
	s := e.Path + ": " + e.Problem
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Store is an open data directory.
type Store struct {
	dir    directory
	lock   *os.File
	record *Record
	key    ed25519.PrivateKey
	peer   election.PeerID
}

// Config is what a store needs to know.
type Config struct {
	Dir    string
	Name   string // this agent's name, which another agent reports if it finds the directory locked
	PeerID func(ed25519.PublicKey) (election.PeerID, error)
}

// LockOf returns the path of the file that an agent locks while it uses the directory.
func LockOf(dir string) string { return filepath.Join(dir, lockFile) }

// Open locks the directory, creates what a first start needs, and returns the promises on record.
// From then on no power cut can undo these promises. Errors about the directory's content are of
// type *Error.
func Open(c Config) (*Store, election.State, error) {
	if err := makeDir(c.Dir); err != nil {
		return nil, election.State{}, err
	}
	lock, err := acquire(LockOf(c.Dir), c.Name)
	if err != nil {
		return nil, election.State{}, err
	}
	s := &Store{dir: directory(c.Dir), lock: lock}
	state, err := s.load(c)
	if err != nil {
		return nil, election.State{}, errors.Join(s.locate(err), s.Close())
	}
	return s, state, nil
}

// locate puts the full path into an error that has only the name of a file.
func (s *Store) locate(err error) error {
	if bad, ok := errors.AsType[*Error](err); ok && !strings.ContainsRune(bad.Path, filepath.Separator) {
		bad.Path = s.dir.path(bad.Path)
	}
	return err
}

// makeDir creates the directory. Later, create makes the directory durable.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return &Error{Path: dir, Problem: "is not a directory", Hint: "name another directory with --data-dir"}
	}
	if err == nil {
		return private(dir, info.Mode().Perm())
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{Path: dir, Problem: "can't be created: " + cause(err), Hint: "name another directory with --data-dir", Err: err}
	}
	return nil
}

// CheckMode refuses a directory that other users may change. It accepts one that does not exist
// yet.
func CheckMode(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil
	}
	return private(dir, info.Mode().Perm())
}

// private refuses a directory in which other users may replace the identity or the promises.
func private(dir string, mode fs.FileMode) error {
	if mode&0o022 != 0 {
		return &Error{Path: dir, Problem: fmt.Sprintf("can be changed by others (mode %04o)", mode), Hint: "if nobody did, run: chmod 700 " + dir}
	}
	return nil
}

// Key returns the agent's private key.
func (s *Store) Key() ed25519.PrivateKey { return s.key }

// Peer returns the agent's peer ID.
func (s *Store) Peer() election.PeerID { return s.peer }

// Write makes the changed words and the state durable. After an error they may or may not be on
// disk. After a *TakenError every later Write fails too.
func (s *Store) Write(p election.Persist) error {
	if p.State != nil && p.State.Peer != s.peer {
		return fmt.Errorf("write state: it belongs to %s, this store to %s", p.State.Peer, s.peer)
	}
	if err := s.held(); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return wrap.Error(s.record.Write(p), "write state")
}

// held returns an error if the path no longer leads to the directory that this agent has locked. A
// directory that was moved, or removed and made again, may belong to another agent.
func (s *Store) held() error {
	locked, err := s.lock.Stat()
	if err != nil {
		return fmt.Errorf("check the lock: %w", err)
	}
	there, err := os.Stat(s.lock.Name())
	if err == nil && os.SameFile(locked, there) {
		return nil
	}
	return &Error{Path: string(s.dir), Problem: "is not the directory this agent locked: it was removed or replaced while the agent ran",
		Hint: "restore it, or stop this agent"}
}

// Close unlocks the directory. It keeps the lock file: if the file were removed, two agents could
// each lock a file of that name.
func (s *Store) Close() error {
	return wrap.Error(errors.Join(s.record.Close(), s.lock.Close()), "unlock data directory")
}

// load reads the identity and the state. Each of them may be missing.
func (s *Store) load(c Config) (election.State, error) {
	record, state, stateErr := OpenRecord(s.dir)
	s.record = record
	key, keyErr := readKey(s.dir)
	if keyErr != nil && !errors.Is(keyErr, fs.ErrNotExist) {
		return election.State{}, keyErr
	}
	if bad, ok := errors.AsType[*Error](stateErr); ok && keyErr == nil && strings.HasSuffix(bad.Hint, moveAway) {
		// If only the state were moved away, the next start would refuse to use the identity without it.
		bad.Hint = "nothing was changed; if the state of this agent is lost, follow \"A lost data directory\" in docs/operations.md"
	}
	if stateErr != nil && !errors.Is(stateErr, fs.ErrNotExist) {
		return election.State{}, stateErr
	}
	haveKey, haveState := keyErr == nil, stateErr == nil
	switch {
	case haveKey && !haveState:
		return election.State{}, &Error{
			Path:    s.dir.path(stateFile),
			Problem: "is missing while the identity exists: the promises made under that identity are lost",
			Hint: "restore the state only if it is the newest; else move the whole directory away, start with a new identity, " +
				"and run on a voter: `doyen voters replace " + c.Name + "`",
		}
	case !haveKey && haveState && !virgin(state):
		return election.State{}, &Error{
			Path:    s.dir.path(identityFile),
			Problem: fmt.Sprintf("is missing while the promises of %s exist", state.Peer),
			Hint:    "restore the identity; else move the whole directory away to start with a new one",
		}
	case !haveKey:
		return s.create(c.PeerID)
	}
	return state, s.adopt(key, state, c.PeerID)
}

// adopt uses the key, after a check that the promises in the state are of that identity.
func (s *Store) adopt(key ed25519.PrivateKey, state election.State, peerID func(ed25519.PublicKey) (election.PeerID, error)) error {
	peer, err := peerID(key.Public().(ed25519.PublicKey))
	if err != nil {
		return fmt.Errorf("derive peer ID: %w", err)
	}
	if state.Peer != peer {
		return &Error{
			Path:    s.dir.path(stateFile),
			Problem: fmt.Sprintf("holds the promises of %s, but the identity next to it is %s", state.Peer, peer),
			Hint:    "restore the two files that belong together, or use another --data-dir",
		}
	}
	s.key, s.peer = key, peer
	return nil
}

// virgin reports whether a state holds no promises yet, so that nothing is lost with it.
func virgin(s election.State) bool {
	return s.Roster == nil && s.Pending == nil && len(s.Grants) == 0 && len(s.Seen) == 0 && s.Attempt == 0
}

// create makes a new identity, but writes the state first. A crash between the two leaves a state
// without promises, which the next start replaces. An identity without a state would look like lost
// promises.
func (s *Store) create(peerID func(ed25519.PublicKey) (election.PeerID, error)) (election.State, error) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return election.State{}, fmt.Errorf("make identity: %w", err)
	}
	if s.peer, err = peerID(public); err != nil {
		return election.State{}, fmt.Errorf("derive peer ID: %w", err)
	}
	s.key = key
	if err := s.syncParents(); err != nil {
		return election.State{}, s.unwritable(err)
	}
	state := election.State{Peer: s.peer}
	if err := s.Write(election.Persist{State: &state}); err != nil {
		return state, s.unwritable(err)
	}
	if err := writeKey(s.dir, key); err != nil {
		return state, s.unwritable(err)
	}
	return state, nil
}

// syncParents makes the data directory itself durable, and the parents that makeDir has made: if a crash removed
// one of them, the promises would be lost too. It skips a parent that can't be opened, or whose file system can't
// sync directories: this agent did not make that parent.
func (s *Store) syncParents() error {
	for d := filepath.Dir(string(s.dir)); ; d = filepath.Dir(d) {
		err := SyncDir(d)
		if unsynced := slices.ContainsFunc([]error{fs.ErrPermission, errors.ErrUnsupported, unix.EINVAL, unix.EROFS}, func(e error) bool { return errors.Is(err, e) }); err != nil && !unsynced {
			return err
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}

func (s *Store) unwritable(err error) error {
	return &Error{Path: string(s.dir), Problem: "can't be written: " + cause(err), Hint: "free disk space or name another directory with --data-dir", Err: err}
}
