package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/internal/leasepage"
)

// Past is all that the former life left on record.
type Past struct {
	election.Past // Life is the former life's number: this life has the next one
	Actors        map[election.Name]Actors
	Voters        []Voter
}

// Of returns the part of the past from which the elector goes on; nil: there is no past.
func (p *Past) Of() *election.Past {
	if p == nil {
		return nil
	}
	return &p.Past
}

// maxLives bounds the former lives of a lineage: a life's number is in the upper bits of its
// sends and rounds.
const maxLives = 1<<23 - 2

// Open takes over the record at the path, or begins a new one. A missing directory is made if the
// one above it suits. With a past, this life goes on in the past's lineage. Without one, a new lineage begins; if there was something at the
// path, problem is why this life can't go on from it, in one line. A nil Record means that
// none can be kept there; if problem is nil too, this kind of system can't keep any.
func Open(c Config) (r *Record, past *Past, problem error) {
	if !supported {
		return nil, nil, nil
	}
	dir := filepath.Dir(c.Path)
	if makes(dir) {
		_ = os.Mkdir(dir, 0o700) // if that fails, suits finds it missing
	}
	on, err := thisHost()
	if err == nil {
		err = suits(dir)
	}
	if err == nil {
		r, past, err = open(c, on)
	}
	if r == nil {
		return nil, nil, missing(err)
	}
	if err != nil {
		return r, nil, fmt.Errorf("the record %s was not used, and a new lineage begins: %w", c.Path, err)
	}
	return r, past, nil
}

func missing(why error) error {
	return fmt.Errorf("no record is kept, so a restart of this agent costs a lease: %w; give a directory in memory (tmpfs) that only this user may write with --record-dir", why)
}

// InMemory returns why the files of a directory would not die with the kernel.
func InMemory(dir string) error {
	if !supported {
		return nil
	}
	return inMemory(dir)
}

// Check returns why Open could keep no record in the directory.
func Check(dir string) error {
	if !supported {
		return nil
	}
	if makes(dir) {
		dir = filepath.Dir(dir)
	}
	err := suits(dir)
	if err == nil && unix.Access(dir, unix.W_OK) != nil {
		err = fmt.Errorf("%s can't be written by this user", dir)
	}
	if err != nil {
		return missing(err)
	}
	return nil
}

// makes reports whether Open makes the directory: a boot removes what is in memory.
func makes(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist) && suits(filepath.Dir(dir)) == nil
}

// suits returns nil if the directory's files die with the kernel, and no other user can remove
// or replace those of this one.
func suits(dir string) error {
	if err := inMemory(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	stat, ok := statOf(info)
	foreign := !ok || stat.Uid != 0 && stat.Uid != uint32(os.Geteuid())
	if foreign || info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%s: %w", dir, accessError{uint32(info.Mode().Perm()), stat.Uid})
	}
	return nil
}

func open(c Config, on host) (*Record, *Past, error) {
	r, past, refused := inherit(c, on, lockWait)
	if refused == nil {
		if refused = r.begin(c, past); refused == nil {
			return r, past, nil
		}
		_, _ = r.Destroy(), r.Close()
	}
	if errors.Is(refused, errLocked) {
		return nil, nil, fmt.Errorf("%s: %w", c.Path, refused) // it seems to be another agent's: leave it alone
	}
	r, err := create(c, on)
	if errors.Is(refused, fs.ErrNotExist) {
		refused = nil
	}
	if err != nil {
		return nil, nil, errors.Join(refused, err)
	}
	return r, nil, refused
}

// Inherit takes the record at the path, with its lock, for a caller that begins no life: the
// keeper, which destroys the record and reveals the secret. It creates nothing.
func Inherit(c Config) (*Record, *Past, error) {
	on, err := thisHost()
	if err != nil {
		return nil, nil, err
	}
	return inherit(c, on, lockWait)
}

func inherit(c Config, on host, wait time.Duration) (*Record, *Past, error) {
	f, err := openFile(c.Path, os.O_RDWR)
	if err != nil {
		return nil, nil, err
	}
	r, past, err := takeOver(c, on, f, wait)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return r, past, nil
}

func takeOver(c Config, on host, f *os.File, wait time.Duration) (*Record, *Past, error) {
	if err := lock(f, wait); err != nil {
		return nil, nil, err
	}
	if !has(c.Path, f) {
		return nil, nil, errGone // the life that had the record has ended the lineage meanwhile
	}
	if err := ours(f); err != nil { // again, now that nobody else can change the file
		return nil, nil, err
	}
	m, err := mapFile(f)
	if err != nil {
		return nil, nil, err
	}
	r, past, err := read(c.Path, f, m, func(h header) error { return h.judge(c.Peer, on, f) })
	if err == nil {
		err = sound(&past.Past, boottime.Now())
	}
	if err == nil && boottime.SuspendedSince(r.ahead) {
		err = errSuspended
	}
	if err != nil {
		unmap(m)
		return nil, nil, err
	}
	return r, past, nil
}

// read reads all of a record.
func read(path string, f *os.File, m memory, judge func(header) error) (r *Record, past *Past, err error) {
	defer leasepage.Caught(leasepage.Guard(), &err)
	h, err := getHeader(m)
	if err != nil {
		return nil, nil, err
	}
	if err := judge(h); err != nil {
		return nil, nil, err
	}
	r = newRecord(path, f, m, h)
	past, err = r.past(m)
	return r, past, err
}

// past reads the parts of the record after the header.
func (r *Record) past(m memory) (past *Past, err error) {
	life, whole := r.life.load(m, make([]uint64, lifeRoom))
	if !whole || len(life) != lifeRoom || life[0] == 0 || time.Duration(life[3]) <= 0 || time.Duration(life[3]) > election.MaxLease {
		return nil, errDamaged
	}
	if life[0] > maxLives {
		return nil, errLives
	}
	r.lineage.Life, r.lineage.Lease, r.ahead = life[0], time.Duration(life[3]), int64(life[4])
	terms, whole := r.terms.load(m, r.last[:])
	if !whole || len(terms) != termsRoom || max(terms[0], terms[1]) > uint64(election.MaxTerm) {
		return nil, errDamaged
	}
	past = &Past{Actors: map[election.Name]Actors{}}
	past.Lineage = r.lineage
	past.Retired, past.Spent = election.Term(terms[0]), election.Term(terms[1])
	addresses, whole := r.voters.load(m, make([]uint64, votersRoom))
	if whole {
		past.Voters, whole = getVoters(addresses)
	}
	if !whole {
		return nil, errDamaged
	}
	if r.table, err = readTable(m, m[wordCheck]); err != nil {
		return nil, err
	}
	for i := range r.table.used {
		row := &r.table.used[i]
		past.Rows = append(past.Rows, row.last)
		if row.acting != (Actors{}) {
			past.Actors[row.name] = row.acting
		}
	}
	return past, nil
}

// begin counts this life, and has it go on with the shorter of the two leases. A term that was
// asked for with a longer lease then ends too early for this agent, never too late.
func (r *Record) begin(c Config, past *Past) error {
	r.lineage.Life++
	ahead := r.ahead // not as it is by now: a suspend since it was compared would go unseen
	if past == nil {
		r.lineage.Lease, ahead = c.Lease, boottime.Ahead()
	} else {
		r.lineage.Lease = min(r.lineage.Lease, c.Lease)
	}
	return r.guarded(func(m memory) error {
		r.storeLife(m, ahead)
		return nil
	})
}

// create makes the record of a new lineage, which gets its name when it is complete. The file
// that had this name is not a record any more.
func create(c Config, on host) (*Record, error) {
	if len(c.Peer) > maxText {
		return nil, fmt.Errorf("the peer ID %q is too long", c.Peer)
	}
	f, err := draft(c.Path, c.Run.String())
	if err != nil {
		return nil, err
	}
	r, err := fill(c, on, f)
	if err == nil {
		err = os.Rename(f.Name(), c.Path)
	}
	if err == nil && !has(c.Path, f) {
		err = errors.New("another agent has put its own in its place")
	}
	if err != nil {
		if r != nil {
			unmap(r.memory)
		}
		_ = os.Remove(f.Name()) // the draft may have got its name
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func fill(c Config, on host, f *os.File) (*Record, error) {
	h, err := newHeader(c, on, f)
	if err != nil {
		return nil, err
	}
	m, err := mapFile(f)
	if err != nil {
		return nil, err
	}
	h.put(m)
	r := newRecord(c.Path, f, m, h)
	err = errors.Join(r.begin(c, nil), r.SetVoters(nil), r.guarded(func(m memory) error {
		r.terms.store(m, r.last[:])
		r.table = newTable(m, m[wordCheck])
		atomic.StoreUint64(&m[wordState], word(alive))
		return nil
	}))
	if err != nil {
		unmap(r.memory)
		return nil, err
	}
	return r, nil
}
