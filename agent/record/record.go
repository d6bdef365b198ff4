package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/internal/leasepage"
)

// Config is where a record is, and whose it is.
type Config struct {
	Path  string
	Peer  election.PeerID
	Run   election.RunID // of this life
	Born  int64          // when it started, in Unix nanoseconds
	Lease time.Duration  // with which this life is configured
}

// Path returns where an agent keeps its record: in the directory; empty: beside its socket.
func Path(directory, socket, agent string) string {
	if directory == "" {
		directory = filepath.Dir(socket)
	}
	return filepath.Join(directory, agent+".record")
}

// Record is the record of the life that runs. Several goroutines may call its methods; those
// of a nil Record do nothing.
type Record struct {
	path    string
	lineage election.Lineage
	secret  [32]byte

	mu     sync.Mutex
	file   *os.File // holds the lock
	memory memory   // nil: the record has ended
	life   value
	terms  value
	voters value
	table  table
	last   [termsRoom]uint64 // what terms has
	ahead  int64             // how far the former life's clock was ahead, see boottime.SuspendedSince
}

// newRecord returns a Record of a file that is locked and mapped.
func newRecord(path string, f *os.File, m memory, h header) *Record {
	seed := m[wordCheck]
	return &Record{
		path: path, file: f, memory: m, secret: h.secret,
		lineage: election.Lineage{ID: h.lineage, JoinedAt: h.joinedAt},
		life:    newValue(wordLife, lifeRoom, seed),
		terms:   newValue(wordTerms, termsRoom, seed),
		voters:  newValue(wordVoters, votersRoom, seed),
	}
}

// Lineage returns the lineage of this life, with the life's number.
func (r *Record) Lineage() election.Lineage {
	if r == nil {
		return election.Lineage{}
	}
	return r.lineage
}

// Kept reports whether a next life could go on from it.
func (r *Record) Kept() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory != nil && has(r.path, r.file)
}

// Write records what has changed. After an error there is no record any more, and the lineage
// has no next life.
func (r *Record) Write(l *election.LifeRecord) error {
	if l == nil {
		return nil
	}
	return r.change(func(m memory) error {
		if terms := [termsRoom]uint64{uint64(l.Retired), uint64(l.Spent)}; terms != r.last {
			r.terms.store(m, terms[:]) // first, since they stand for rows that are removed
			r.last = terms
		}
		if l.Shortest != 0 && l.Shortest < r.lineage.Lease {
			r.lineage.Lease = l.Shortest
			r.storeLife(m, r.ahead)
		}
		if len(l.Rows) > 1 {
			for i := range l.Rows { // rows that are removed make room for new ones
				if a := &l.Rows[i]; a.Highest == 0 {
					if _, err := r.table.write(m, rows, a); err != nil {
						return err
					}
				}
			}
		}
		at := 0
		for i := range l.Rows {
			var err error
			if at, err = r.table.write(m, at, &l.Rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// WriteActors records what acts, or is about to act, in an election that Write has recorded.
// In any other election nothing may act. Errors are as of Write.
func (r *Record) WriteActors(name election.Name, a Actors) error {
	return r.change(func(m memory) error {
		i, found := r.table.find(name)
		switch {
		case !found || r.table.used[i].acting == a:
			return nil
		case len(a.Program.Campaign) > maxCampaign:
			return fmt.Errorf("the campaign ID %q is too long", a.Program.Campaign)
		}
		r.table.used[i].storeActors(m, &a)
		return nil
	})
}

// Suspended records that this life knows of every suspend of the host so far. The next life
// goes on only if there was none since.
func (r *Record) Suspended() error {
	return r.change(func(m memory) error {
		r.storeLife(m, boottime.Ahead())
		return nil
	})
}

func (r *Record) storeLife(m memory, ahead int64) {
	r.ahead = ahead
	r.life.store(m, []uint64{r.lineage.Life, uint64(os.Getpid()), started(os.Getpid()), uint64(r.lineage.Lease), uint64(ahead)})
}

// SetVoters records where the voters can be reached, for as many voters as there is room.
func (r *Record) SetVoters(all []Voter) error {
	return r.change(func(m memory) error {
		var room [votersRoom]uint64
		r.voters.store(m, putVoters(&room, all))
		return nil
	})
}

// change stores something. If that fails, the record may be out of date, and no life may go on
// from it.
func (r *Record) change(do func(memory) error) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return nil
	}
	err := r.guarded(do)
	if err != nil {
		return fmt.Errorf("write record %s: %w", r.path, errors.Join(err, r.destroy()))
	}
	return nil
}

// guarded turns access to memory that is not there into an error.
func (r *Record) guarded(do func(memory) error) (err error) {
	defer leasepage.Caught(leasepage.Guard(), &err)
	return do(r.memory)
}

// Destroy ends the lineage. When it returns, no life can begin with the record, even if it
// returns an error (K6).
func (r *Record) Destroy() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return nil
	}
	if err := r.destroy(); err != nil {
		return fmt.Errorf("remove record: %w", err)
	}
	return nil
}

// destroy first marks the record as destroyed, which is enough. It then removes the content
// and the name.
func (r *Record) destroy() error {
	wiped := r.guarded(func(m memory) error {
		atomic.StoreUint64(&m[wordState], 0)
		clear(m)
		return nil
	})
	if wiped != nil {
		wiped = r.file.Truncate(0)
	}
	unmap(r.memory)
	r.memory = nil
	if has(r.path, r.file) {
		return errors.Join(wiped, os.Remove(r.path))
	}
	return wiped
}

// Close gives the lock and the memory back. The record stays for the next life.
func (r *Record) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	unmap(r.memory)
	r.memory = nil
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}
