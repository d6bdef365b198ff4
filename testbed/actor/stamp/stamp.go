// Package stamp lets a program record when it acts, so that others can judge later, to a
// millisecond, whether two programs acted at once.
//
// A program that acts writes the instants of its first and its newest act, on CLOCK_BOOTTIME,
// into a separate file, every half a millisecond. What a program does after its newest stamp
// is not seen. So an overlap of less than half a millisecond may go unnoticed, but every overlap
// that is reported happened.
//
// The package imports few others, so that testbed/actor/command, which is built from it alone,
// stays small. The bench starts that command while it measures.
package stamp

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// Every is the time between two stamps.
const Every = 500 * time.Microsecond

// Now reads CLOCK_BOOTTIME, in nanoseconds.
func Now() int64 { return int64(boottime.Now()) }

// Stamp is when a process acted under one term.
type Stamp struct {
	Term        uint64
	PID         int
	First, Last int64  // instants, nanoseconds of CLOCK_BOOTTIME
	Key         string // DOYEN_KEY; empty unless the process is the command of a job, as are the others
	Try         int
	Ended       bool // the command has done all of its work
}

// Commanded is the stamp of a command that doyen has started. first is the instant at which it began to act.
func Commanded(first int64) (s Stamp, err error) {
	s.First, s.Key = first, os.Getenv("DOYEN_KEY")
	s.Term, err = strconv.ParseUint(os.Getenv("DOYEN_TERM"), 10, 64)
	if err == nil && s.Key != "" {
		s.Try, err = strconv.Atoi(os.Getenv("DOYEN_TRY"))
	}
	return s, wrap.Error(err, "read DOYEN_TERM and DOYEN_TRY")
}

// numbers are how a file begins; the key follows.
type numbers struct {
	Term                  uint64
	PID, First, Last, Try int64
	Ended                 bool
}

// Book is the file in which a process stamps that it acts under one term.
type Book struct {
	file  *os.File
	stamp Stamp
}

// unfinished begins the name of a file that is not complete.
const unfinished = "new."

// Open makes a book of this process in a folder.
func Open(dir string, s Stamp) (*Book, error) {
	s.PID = os.Getpid()
	name := fmt.Sprintf("%d.%d.%d", s.PID, s.Term, s.First)
	file, err := os.Create(filepath.Join(dir, unfinished+name))
	if err != nil {
		return nil, fmt.Errorf("stamp: %w", err)
	}
	b := &Book{file, s}
	if err = b.Stamp(s.First); err == nil {
		err = wrap.Error(os.Rename(file.Name(), filepath.Join(dir, name)), "stamp")
	}
	if err != nil {
		file.Close()
	}
	return b, err
}

func (b *Book) Stamp(at int64) error {
	s := &b.stamp
	s.Last = at
	text, err := binary.Append(nil, binary.LittleEndian, numbers{s.Term, int64(s.PID), s.First, s.Last, int64(s.Try), s.Ended})
	if err == nil {
		_, err = b.file.WriteAt(append(text, s.Key...), 0)
	}
	return wrap.Error(err, "stamp")
}

// End stamps that the command has done all of its work.
func (b *Book) End() error {
	b.stamp.Ended = true
	return b.Stamp(Now())
}

func (b *Book) Close() error { return b.file.Close() }

// Act stamps until ctx ends.
func (b *Book) Act(ctx context.Context) error {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		if err := b.Stamp(Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Act opens a book, and stamps in it until ctx ends.
func Act(ctx context.Context, dir string, s Stamp) error {
	b, err := Open(dir, s)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Act(ctx)
}

// Read returns the stamps in a folder, one for each process and term.
func Read(dir string) ([]Stamp, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	var all []Stamp
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		var n numbers
		size := 0
		if err == nil {
			size, err = binary.Decode(text, binary.LittleEndian, &n)
		}
		if err != nil {
			return nil, fmt.Errorf("read stamp %s: %d bytes, %w", e.Name(), len(text), err)
		}
		all = append(all, Stamp{n.Term, int(n.PID), n.First, n.Last, string(text[size:]), int(n.Try), n.Ended})
	}
	return all, nil
}
