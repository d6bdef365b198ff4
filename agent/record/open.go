package record

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// Past is everything that the former life left on record.
type Past struct {
	election.Past // its Life is the former life's number; this life has the next one
	Actors        map[election.Name]Actors
	Voters        []Voter
}

// Of returns the part of the past that the elector needs; nil: it has none.
func (p *Past) Of() *election.Past {
	if p == nil {
		return nil
	}
	return &p.Past
}

// maxLives bounds the lives of a lineage, because the upper bits of send IDs and rounds hold a
// life's number.
const maxLives = 1<<23 - 2

// Open takes over the record at the path, or begins a new one. It makes a missing directory if the parent directory
// is suitable. If Open returns a past, this life continues the past's lineage. Without a past, this life begins a
// new lineage, and problem is, in one line, why the file at the path was not used; nil: no file was there. If r is
// nil, no record can be kept, and problem is the reason; nil: this kind of system never keeps a record.
func Open(c Config) (r *Record, past *Past, problem error) {
	if !supported {
		return nil, nil, nil
	}
	dir := filepath.Dir(c.Path)
	if makes(dir) {
		_ = os.Mkdir(dir, 0o700) // if that fails, suits finds the directory missing
	}
	err := suits(dir)
	if err == nil {
		r, past, err = open(c)
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
	return fmt.Errorf("no record is kept, so a restart of this agent costs a lease: %w; give a directory in memory (tmpfs) in which no other user can replace files with --record-dir", why)
}

// Check returns why Open could keep no record in the directory; nil: it could.
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

// makes reports whether Open makes the directory, which is missing after a boot since it is in memory.
func makes(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist) && suits(filepath.Dir(dir)) == nil
}

// suits returns nil if the directory's files are lost when the kernel ends, and no other user can
// remove or replace the files of this user.
func suits(dir string) error {
	if err := InMemory(dir); err != nil {
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
		return fmt.Errorf("%s: %w", dir, accessError(info.Mode(), stat.Uid))
	}
	return nil
}

func open(c Config) (*Record, *Past, error) {
	r, past, refused := inherit(c, lockWait)
	if refused == nil {
		r.begin(c.Lease)
		if refused = r.failed; refused == nil {
			return r, past, nil
		}
		_, _ = r.Destroy(), r.Close()
	}
	if errors.Is(refused, errLocked) {
		return nil, nil, fmt.Errorf("%s: %w", c.Path, refused) // the record seems to belong to another agent: leave it alone
	}
	r, err := create(c)
	if errors.Is(refused, fs.ErrNotExist) {
		refused = nil
	}
	if err != nil {
		return nil, nil, errors.Join(refused, err)
	}
	return r, nil, refused
}

// End destroys the record at the path, for a keeper that begins no life (K6). It returns the past that was on
// record. If it returns no past, the error is why the record could not be read; nil: no record was there.
func End(c Config) (*Past, error) {
	r, past, err := inherit(c, lockWait)
	switch {
	case err == nil:
		return past, errors.Join(r.Destroy(), r.Close())
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, errLocked):
		return nil, err
	}
	return nil, errors.Join(err, os.Remove(c.Path))
}

func inherit(c Config, wait time.Duration) (*Record, *Past, error) {
	for end := time.Now().Add(wait); ; time.Sleep(lockEvery) {
		f, err := openFile(c.Path)
		if err != nil {
			return nil, nil, err
		}
		r, past, err := takeOver(c, f)
		if err == nil {
			return r, past, nil
		}
		err = errors.Join(err, f.Close())
		if !errors.Is(err, errLocked) && !errors.Is(err, errMoved) || time.Now().After(end) {
			return nil, nil, err
		}
	}
}

func takeOver(c Config, f *os.File) (*Record, *Past, error) {
	if err := lock(f); err != nil {
		return nil, nil, err
	}
	if !has(c.Path, f) {
		return nil, nil, errMoved // the life that had the record has destroyed it, or moved it to another file
	}
	if err := ours(f); err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxSize))
	if err != nil {
		return nil, nil, err
	}
	s, end, err := replay(text)
	if err != nil {
		return nil, nil, err
	}
	want, err := headerOf(f, c.Peer)
	if err != nil {
		return nil, nil, err
	}
	past := s.past()
	switch err := cmp.Or(s.header.judge(want), sound(&past.Past, boottime.Now())); {
	case err != nil:
		return nil, nil, err
	case s.life.Number > maxLives:
		return nil, nil, errLives
	case boottime.SuspendedSince(s.life.Ahead):
		return nil, nil, errSuspended
	}
	r := &Record{path: c.Path, file: f, end: int64(end), limit: compactAt, state: s}
	return r, past, f.Truncate(r.end)
}

// begin counts this life, and records the shorter one of its lease and the earlier lives' lease. So a term that was
// asked for with a longer lease ends too early for this agent, never too late.
func (r *Record) begin(lease time.Duration) {
	_ = allocate(r.file, r.limit) // Truncate may have given up reserved memory; without that memory, a full tmpfs may end the record
	r.change(func(s *state, it *item) {
		// Ahead keeps its old value: with a new one, a suspend since the comparison would not be noticed.
		it.Life = &life{s.life.Number + 1, min(s.life.Lease, lease), s.life.Ahead}
	})
}

// create makes the record of a new lineage. A file that had this name before stops being a record.
func create(c Config) (*Record, error) {
	r := &Record{path: c.Path, state: newState()}
	r.state.header = header{Lineage: election.LineageID(c.Run), JoinedAt: c.Born, Peer: c.Peer}
	r.state.life = life{Number: 1, Lease: c.Lease, Ahead: boottime.Ahead()}
	return r, r.rewrite()
}

// headerOf returns the header that a record of that agent would get if it were written to the file now. The fields
// Lineage and JoinedAt stay zero.
func headerOf(f *os.File, peer election.PeerID) (header, error) {
	boot, err := leasepage.ThisBoot()
	if err != nil {
		return header{}, err
	}
	h := header{Peer: peer, Boot: boot}
	info, err := f.Stat()
	if err != nil {
		return header{}, err
	}
	stat, _ := statOf(info)
	h.Device, h.Inode = uint64(stat.Dev), stat.Ino
	switch info, err := os.Stat("/proc/self/ns/time"); {
	case errors.Is(err, fs.ErrNotExist): // a kernel without time namespaces
	case err != nil:
		return header{}, fmt.Errorf("read the time namespace: %w", err)
	default:
		stat, _ := statOf(info)
		h.TimeNS = stat.Ino
		if h.Offsets, err = offsets(); err != nil {
			return header{}, fmt.Errorf("read the clocks of the time namespace: %w", err)
		}
	}
	return h, nil
}

// judge compares the header of a former life's record with the header that the record would get now. The
// error is why this life can't continue from that record (K3).
func (h header) judge(want header) error {
	switch {
	case h.Boot != want.Boot:
		return errOtherBoot
	case h.TimeNS != want.TimeNS, h.Offsets != want.Offsets:
		return errOtherTime
	case h.Peer != want.Peer:
		return fmt.Errorf("it belongs to another agent (%s)", h.Peer)
	case h.Device != want.Device, h.Inode != want.Inode:
		return errOtherFile
	}
	return nil
}
