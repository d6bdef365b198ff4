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

const (
	// Every is the time between two stamps.
	Every = 500 * time.Microsecond
	size  = 16 // first and newest, 8 bytes each
)

// Now reads CLOCK_BOOTTIME, in nanoseconds.
func Now() int64 { return int64(boottime.Now()) }

type Stamp struct {
	Term        uint64
	PID         int
	First, Last int64 // instants, nanoseconds of CLOCK_BOOTTIME
}

// Book is the file in which a program stamps that it acts under one term.
type Book struct {
	file  *os.File
	first int64
}

// Open makes a book in a folder. first is the instant at which the program began to act.
func Open(dir string, term uint64, first int64) (*Book, error) {
	name := fmt.Sprintf("%d.%d", os.Getpid(), term)
	file, err := os.Create(filepath.Join(dir, name+".new"))
	if err != nil {
		return nil, fmt.Errorf("stamp: %w", err)
	}
	b := &Book{file, first}
	if err := b.Stamp(first); err != nil {
		file.Close()
		return nil, err
	}
	if err := os.Rename(file.Name(), filepath.Join(dir, name)); err != nil { // a book appears only once it is complete
		file.Close()
		return nil, fmt.Errorf("stamp: %w", err)
	}
	return b, nil
}

func (b *Book) Stamp(at int64) error {
	var s [size]byte
	binary.LittleEndian.PutUint64(s[:], uint64(b.first))
	binary.LittleEndian.PutUint64(s[8:], uint64(at))
	_, err := b.file.WriteAt(s[:], 0)
	return wrap.Error(err, "stamp")
}

func (b *Book) Close() error { return b.file.Close() }

// Act stamps until ctx ends. first is the instant at which the program began to act.
func Act(ctx context.Context, dir string, term uint64, first int64) error {
	b, err := Open(dir, term, first)
	if err != nil {
		return err
	}
	defer b.Close()
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

func Read(dir string) ([]Stamp, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read stamps: %w", err)
	}
	var all []Stamp
	for _, e := range entries {
		pid, term, ok := strings.Cut(e.Name(), ".")
		if !ok || strings.HasSuffix(e.Name(), ".new") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || len(text) != size {
			return nil, fmt.Errorf("read stamp %s: %d bytes, %w", e.Name(), len(text), err)
		}
		s := Stamp{First: int64(binary.LittleEndian.Uint64(text)), Last: int64(binary.LittleEndian.Uint64(text[8:]))}
		if s.PID, err = strconv.Atoi(pid); err != nil {
			return nil, fmt.Errorf("read stamp %s: %w", e.Name(), err)
		}
		if s.Term, err = strconv.ParseUint(term, 10, 64); err != nil {
			return nil, fmt.Errorf("read stamp %s: %w", e.Name(), err)
		}
		all = append(all, s)
	}
	return all, nil
}
