package leasepage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Writer keeps one page. Only one goroutine at a time may call its methods.
type Writer struct {
	path     string
	page     *mapping // nil: the page was removed
	sequence uint64
	value    value

	put func(*uint64, uint64) // stores one word; a test can stop the writer between two stores
}

// Create makes an election's page, without a lease, for the agent with that lineage ID. The page is a file in
// the directory, named after the election. Create wipes a file that already exists. The new file gets its name
// only when it is complete: its blocks are allocated, and the owner's group may read it.
func Create(directory, election string, agent uint64) (*Writer, error) {
	w, err := create(directory, election, agent)
	if err != nil {
		return nil, fmt.Errorf("create lease page %s: %w", filepath.Join(directory, election), err)
	}
	return w, nil
}

func create(directory, election string, agent uint64) (*Writer, error) {
	if !usable(election) {
		return nil, errors.New("a file can't have that name")
	}
	host, err := ThisBoot()
	if err != nil {
		return nil, err
	}
	w := &Writer{path: filepath.Join(directory, election), put: atomic.StoreUint64}
	if err := Wipe(w.path); err != nil {
		return nil, err
	}
	draft := filepath.Join(directory, draftPrefix+election)
	if err := ignoreMissing(os.Remove(draft)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping remains
	err = w.begin(f, header{election: election, host: host, agent: agent})
	if err == nil {
		err = os.Rename(draft, w.path)
	}
	if err != nil {
		return nil, errors.Join(err, ignoreMissing(os.Remove(draft)))
	}
	return w, nil
}

// Adopt continues the page that an earlier process of the same lineage left. Programs that have mapped the page
// see its old content until Set changes it.
func Adopt(directory, election string, agent uint64) (_ *Writer, err error) {
	defer caught(debug.SetPanicOnFault(true), &err)
	host, err := ThisBoot()
	if err != nil {
		return nil, err
	}
	w := &Writer{path: filepath.Join(directory, election), put: atomic.StoreUint64}
	f, err := open(w.path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping remains
	if w.page, err = mapFile(f, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return nil, err
	}
	if err := judge(w.page.head, election, host); err != nil {
		return nil, err
	}
	w.sequence = w.page.sequence()
	switch v, whole := w.page.load(w.sequence); {
	case w.page.head != header{election: election, host: host, agent: agent}.encode():
		return nil, errOtherAgent
	case !whole:
		return nil, errNoPage
	default:
		w.value = v
		return w, nil
	}
}

// draftPrefix marks a page that is not complete yet. No election's name starts with it.
const draftPrefix = ".new-"

func usable(election string) bool {
	return election != "" && len(election) <= maxName && election[0] != '.' && !strings.ContainsAny(election, "/\x00")
}

// begin fills in the new file. It writes the whole file, so that a later store through the mapping never needs
// a new block, which a full disk does not have.
func (w *Writer) begin(f *os.File, h header) error {
	head := h.encode()
	if _, err := f.WriteAt(append(head[:], make([]byte, Size-headerSize)...), 0); err != nil {
		return err
	}
	err := f.Chmod(0o640) // independent of the umask
	if err != nil {
		return err
	}
	if w.page, err = mapFile(f, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	return w.store(value{})
}

// Set makes the page show that the agent leads in that term until the deadline, an instant of CLOCK_BOOTTIME in
// nanoseconds. Deadline 0 means that the agent does not lead. If the page already shows this, Set writes
// nothing. After an error Set has removed the page, so no reader finds a lease in it.
func (w *Writer) Set(term uint64, deadline int64) error {
	v := value{term, deadline}
	if w.page == nil || v == w.value {
		return nil
	}
	if err := w.store(v); err != nil {
		return fmt.Errorf("write lease page %s: %w", w.path, errors.Join(err, w.remove()))
	}
	return nil
}

// store writes a value to the copy that no reader uses, and then makes readers use that copy.
func (w *Writer) store(v value) (err error) {
	defer caught(debug.SetPanicOnFault(true), &err)
	next, words := w.sequence+1, w.page.words
	at := place(next)
	w.put(&words[at], v.term)
	w.put(&words[at+1], uint64(v.deadline))
	w.put(&words[at+2], seal(w.page.sum, next, v))
	w.put(&words[wordSequence], next)
	w.sequence, w.value = next, v
	return nil
}

// Close ends the lease that the page shows, and removes the page.
func (w *Writer) Close() error {
	if w.page == nil {
		return nil
	}
	if err := w.Set(w.value.term, 0); err != nil {
		return err
	}
	return w.remove()
}

// remove wipes the file and removes it, unless another file has its name by now.
func (w *Writer) remove() error {
	page := w.page
	w.page = nil
	if there, err := os.Lstat(w.path); err != nil || !os.SameFile(there, page.file) {
		return ignoreMissing(err)
	}
	return Wipe(w.path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
