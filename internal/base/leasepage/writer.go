package leasepage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Writer keeps one page. Its methods are for one goroutine at a time.
type Writer struct {
	path     string
	file     os.FileInfo // identifies the page's file
	words    *words      // nil: the page is gone
	sum      uint64
	sequence uint64
	value    value

	put func(*uint64, uint64) // stores one word; a test stops the writer between two
}

// Create makes the page of an election, without a lease, for the agent of that boot ID. It
// is a file with the election's name in the directory; a file that is there already is
// wiped. The file appears at its name only when it is complete: its blocks are allocated,
// and the owner's group may read it.
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
	if err := os.Remove(draft); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	err = w.begin(f, header{election: election, host: host, agent: agent})
	if err == nil {
		err = os.Rename(draft, w.path)
	}
	if err != nil {
		w.release()
		return nil, errors.Join(err, ignoreMissing(os.Remove(draft)))
	}
	return w, nil
}

// Adopt goes on with the page that an earlier process of the same lineage left. Programs that
// have it mapped see what it shows, until Set changes that.
func Adopt(directory, election string, agent uint64) (*Writer, error) {
	w, err := adopt(directory, election, agent)
	if err != nil {
		return nil, fmt.Errorf("adopt lease page %s: %w", filepath.Join(directory, election), err)
	}
	return w, nil
}

func adopt(directory, election string, agent uint64) (*Writer, error) {
	host, err := ThisBoot()
	if err != nil {
		return nil, err
	}
	w := &Writer{path: filepath.Join(directory, election), put: atomic.StoreUint64}
	f, info, err := open(w.path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	if info.Size() != Size {
		return nil, errShort
	}
	if w.words, err = mapWords(f, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return nil, err
	}
	w.file = info
	if err := w.goOn(header{election: election, host: host, agent: agent}); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// goOn reads what the page shows.
func (w *Writer) goOn(h header) (err error) {
	defer Caught(Guard(), &err)
	head := *(*[headerSize]byte)(unsafe.Pointer(w.words))
	if err := judge(head, h.election, h.host); err != nil {
		return err
	}
	if head != h.encode() {
		return errOtherAgent
	}
	w.sum, w.sequence = headerSum(head), atomic.LoadUint64(&w.words[wordSequence])
	at := place(w.sequence)
	w.value = value{atomic.LoadUint64(&w.words[at]), int64(atomic.LoadUint64(&w.words[at+1]))}
	if w.sequence == 0 || atomic.LoadUint64(&w.words[at+2]) != seal(w.sum, w.sequence, w.value) {
		return errNoPage
	}
	return nil
}

// draftPrefix marks a page in the making; no election's name begins with it.
const draftPrefix = ".new-"

func usable(election string) bool {
	return election != "" && len(election) <= maxName && election[0] != '.' && !strings.ContainsAny(election, "/\x00")
}

// begin fills in the new file.
func (w *Writer) begin(f *os.File, h header) error {
	if err := allocate(f); err != nil {
		return fmt.Errorf("allocate it: %w", err)
	}
	head := h.encode()
	if _, err := f.WriteAt(head[:], 0); err != nil {
		return err
	}
	if err := f.Chmod(0o640); err != nil { // whatever the umask is
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mapped, err := mapWords(f, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return err
	}
	w.words, w.sum, w.file = mapped, headerSum(head), info
	return w.store(value{})
}

// Set has the page show that the agent leads in that term until the deadline, an instant
// of CLOCK_BOOTTIME in nanoseconds. With a deadline of 0 the agent does not lead. What the
// page shows already is not written again. After an error the page is gone, and no reader
// finds a lease in it.
func (w *Writer) Set(term uint64, deadline int64) error {
	v := value{term, deadline}
	if w.words == nil || v == w.value {
		return nil
	}
	if err := w.store(v); err != nil {
		return fmt.Errorf("write lease page %s: %w", w.path, errors.Join(err, w.abandon()))
	}
	return nil
}

// store writes a value where no reader looks, and then has readers look there.
func (w *Writer) store(v value) (err error) {
	defer Caught(Guard(), &err)
	next := w.sequence + 1
	at := place(next)
	w.put(&w.words[at], v.term)
	w.put(&w.words[at+1], uint64(v.deadline))
	w.put(&w.words[at+2], seal(w.sum, next, v))
	w.put(&w.words[wordSequence], next)
	w.sequence, w.value = next, v
	return nil
}

// abandon gives up a page that can't be written: it is cut to nothing, so that programs
// that have it mapped find no lease.
func (w *Writer) abandon() error {
	w.release()
	f, info, err := open(w.path, os.O_RDWR)
	if err != nil {
		return ignoreMissing(err)
	}
	defer f.Close()
	if !os.SameFile(info, w.file) {
		return nil
	}
	return errors.Join(f.Truncate(0), w.remove())
}

// Close ends the lease that the page shows, and removes it.
func (w *Writer) Close() error {
	if w.words == nil {
		return nil
	}
	if err := w.Set(w.value.term, 0); err != nil {
		return err
	}
	w.release()
	if err := w.remove(); err != nil {
		return fmt.Errorf("remove lease page: %w", err)
	}
	return nil
}

// remove removes the file, unless another file has its name by now.
func (w *Writer) remove() error {
	there, err := os.Lstat(w.path)
	if err != nil {
		return ignoreMissing(err)
	}
	if !os.SameFile(there, w.file) {
		return nil
	}
	return ignoreMissing(os.Remove(w.path))
}

func (w *Writer) release() {
	if w.words != nil {
		unmap(w.words)
		w.words = nil
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
