package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// Config is where a record is, and to which agent and life it belongs.
type Config struct {
	Path  string
	Peer  election.PeerID
	Run   election.RunID // the run ID of this life
	Born  int64          // when this life started, in Unix nanoseconds
	Lease time.Duration  // the configured lease of this life
}

// Path returns where an agent keeps its record: in directory, or beside its socket if directory is empty.
func Path(directory, socket, agent string) string {
	return filepath.Join(cmp.Or(directory, filepath.Dir(socket)), agent+".record")
}

// Record is the record of the running life. Several goroutines may call its methods. On a nil
// Record they do nothing.
type Record struct {
	path string

	mu     sync.Mutex
	file   *os.File // holds the lock; nil: closed
	ended  bool
	failed error // why the record ended; nil: no write has failed
	end    int64 // length of the file
	limit  int64 // length beyond which the log is rewritten
	state  state
	entry  []byte // room for the next item

	lookAt election.Instant // when Problem checks the file again
	gone   bool             // the file was missing or replaced at that check
}

// Lineage returns the lineage of this life, with the life's number.
func (r *Record) Lineage() election.Lineage {
	return under(r, func() election.Lineage { return r.state.lineage() })
}

// under calls the given function while it holds the lock. For a nil Record it returns the zero value.
func under[T any](r *Record, what func() T) (nothing T) {
	if r == nil {
		return nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return what()
}

// Kept reports whether a next life could continue from the record.
func (r *Record) Kept() bool { return under(r, func() bool { return !r.ended && has(r.path, r.file) }) }

// lookEvery is how often Problem checks that the record's file is still there.
const lookEvery = time.Minute

// Problem returns why the next life could not continue from this record, in one line for people; empty: it could,
// or no record was ever kept. The file is checked once in lookEvery.
func (r *Record) Problem(now election.Instant) string {
	return under(r, func() string {
		if !r.ended && now >= r.lookAt {
			r.lookAt, r.gone = now.Add(lookEvery), !has(r.path, r.file)
		}
		switch {
		case r.failed != nil:
			return "no record is kept any more, so a restart of this agent costs a lease: " + r.failed.Error()
		case r.gone:
			return "the file of the record was removed or replaced, so a restart of this agent costs a lease: keep others from its directory, and restart the agent, which makes a new one: doyen restart hands over first"
		}
		return ""
	})
}

// Write records what has changed. If this or any other write fails, the record ends,
// and no life can continue the lineage.
func (r *Record) Write(l *election.LifeRecord) {
	if l == nil {
		return
	}
	r.change(func(s *state, it *item) {
		if t := (terms{l.Retired, l.Spent}); t != s.terms {
			it.Terms = &t
		}
		if l.Shortest != 0 && l.Shortest < s.life.Lease {
			it.Life = &life{s.life.Number, l.Shortest, s.life.Ahead}
		}
		it.Rows = l.Rows
	})
}

// WriteProgram records which program acts, or is about to act, in an election that Write has
// recorded before. In other elections nothing may act.
func (r *Record) WriteProgram(name election.Name, p Program) {
	r.writeActors(name, func(a *Actors) { a.Program = p })
}

// WriteCompanion records which companion acts, or is about to act, in such an election.
func (r *Record) WriteCompanion(name election.Name, p Program) {
	r.writeActors(name, func(a *Actors) { a.Companion = p })
}

func (r *Record) writeActors(name election.Name, edit func(*Actors)) {
	r.change(func(s *state, it *item) {
		a := s.actors[name]
		edit(&a)
		if _, known := s.rows[name]; known && a != s.actors[name] {
			it.Actors = map[election.Name]Actors{name: a}
		}
	})
}

// Suspended records that this life knows of all suspends of the host so far. The next life
// continues only if there was no suspend after that.
func (r *Record) Suspended() {
	r.change(func(s *state, it *item) { it.Life = &life{s.life.Number, s.life.Lease, boottime.Ahead()} })
}

// SetVoters records the addresses of the voters.
func (r *Record) SetVoters(all []Voter) {
	r.change(func(s *state, it *item) {
		if !slices.Equal(all, s.voters) {
			it.Voters = new(slices.Clone(all))
		}
	})
}

// Voters returns the addresses of the voters that were recorded last.
func (r *Record) Voters() []Voter {
	return under(r, func() []Voter { return slices.Clone(r.state.voters) })
}

// change appends an item to the log in one write. If that fails, the record may be out of date, so
// no life may continue from it.
func (r *Record) change(what func(*state, *item)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	var it item
	what(&r.state, &it)
	if err := r.append(&it); err != nil {
		r.failed = fmt.Errorf("write record %s: %w", r.path, errors.Join(err, r.destroy()))
		return
	}
	if r.end >= r.limit {
		r.compact()
	}
}

func (r *Record) append(it *item) error {
	entry, err := encode(r.entry[:0], it)
	if err != nil || len(entry) == entryLen+1 { // nothing has changed
		return err
	}
	r.entry = entry
	if info, err := r.file.Stat(); err != nil {
		return err
	} else if info.Size() != r.end {
		return errSize
	}
	if _, err := r.file.WriteAt(entry, r.end); err != nil {
		return err
	}
	r.end += int64(len(entry))
	if !r.state.apply(it) {
		return errDamaged
	}
	return nil
}

// encode appends an item, with its length and checksums, to the bytes.
func encode(to []byte, it *item) ([]byte, error) {
	mode, err := cbor.EncOptions{}.UserBufferEncMode()
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(append(to, make([]byte, entryLen)...))
	if err := mode.MarshalToBuffer(it, b); err != nil {
		return nil, err
	}
	seal(b.Bytes()[len(to):])
	return b.Bytes(), nil
}

// compactAt is the least length at which a log is rewritten. A log must also double before it is rewritten again.
const compactAt = 1 << 20

// compact writes the state into a new file, which replaces the old one. If that fails, or if the old file has
// lost its name, the agent goes on with the old file, and the log becomes longer.
func (r *Record) compact() {
	r.limit = r.end + compactAt
	old := r.file
	if !has(r.path, old) || r.rewrite() != nil {
		return
	}
	_, _ = old.Truncate(0), old.Close() // no life may continue from the old file, whatever name it has
}

// rewrite moves the record to a new file, which gets its name when it is complete.
func (r *Record) rewrite() (err error) {
	f, err := draft(r.path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the file may have got its name already
			err = errors.Join(err, f.Close())
		}
	}()
	s := r.state
	here, err := headerOf(f, s.header.Peer)
	if err != nil {
		return err
	}
	here.Lineage, here.JoinedAt = s.header.Lineage, s.header.JoinedAt
	s.header = here
	text, err := encode(binary.LittleEndian.AppendUint32([]byte(magic), Format), s.whole())
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	limit := max(compactAt, 2*int64(len(text)))
	if err := allocate(f, limit); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), r.path); err != nil {
		return err
	}
	if !has(r.path, f) {
		return errors.New("another agent has put its own in its place")
	}
	r.file, r.state, r.end, r.limit = f, s, int64(len(text)), limit
	return nil
}

// Destroy ends the lineage. Once it returns, no life can begin with the record (K6).
func (r *Record) Destroy() error {
	return under(r, func() error {
		if r.ended {
			return nil
		}
		return wrap.Error(r.destroy(), "remove record")
	})
}

// destroy first removes the content, which is sufficient, and then the name.
func (r *Record) destroy() error {
	r.ended = true
	err := r.file.Truncate(0)
	if has(r.path, r.file) {
		err = errors.Join(err, os.Remove(r.path))
	}
	return err
}

// Close releases the lock. The record remains for the next life.
func (r *Record) Close() error {
	return under(r, func() error {
		if r.ended = true; r.file == nil {
			return nil
		}
		f := r.file
		r.file = nil
		return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
	})
}
