package leasepage

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	errNoFile     = errors.New("it is not a regular file")
	errShort      = errors.New("it is shorter than a page")
	errNoPage     = errors.New("it is not a lease page")
	errOther      = errors.New("it is the page of another election")
	errOtherAgent = errors.New("it is the page of another agent, or of an earlier lineage")
	errOtherBoot  = errors.New("it is from an earlier boot of the host")
)

func parseBoot(text string) (HostBoot, error) {
	var b HostBoot
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), "-", ""))
	if err != nil || len(raw) != len(b) {
		return b, fmt.Errorf("read the host's boot: %.80q is not a UUID", text)
	}
	copy(b[:], raw)
	return b, nil
}

// open opens a regular file. It refuses a link, and does not wait at a pipe that nobody writes to.
func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, errNoFile
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// mapping is one page, mapped until nothing refers to the mapping any more.
type mapping struct {
	words *words
	head  [headerSize]byte
	sum   uint64 // the header's part of the check
	file  os.FileInfo
}

// mapFile maps a page, and reads its header.
func mapFile(f *os.File, protection int) (m *mapping, err error) {
	defer caught(debug.SetPanicOnFault(true), &err)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < Size {
		return nil, errShort
	}
	at, err := unix.MmapPtr(int(f.Fd()), 0, nil, Size, protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map it: %w", err)
	}
	m = &mapping{words: (*words)(at), file: info}
	runtime.AddCleanup(m, unmap, m.words)
	m.head = *(*[headerSize]byte)(at)
	m.sum = headerSum(m.head)
	return m, nil
}

func unmap(w *words) {
	_ = unix.MunmapPtr(unsafe.Pointer(w), Size) // fails only for an address that is not a mapping
}

func (m *mapping) sequence() uint64 { return atomic.LoadUint64(&m.words[wordSequence]) }

// load returns the value at a sequence, and whether a writer has completed that value.
func (m *mapping) load(sequence uint64) (v value, whole bool) {
	at := place(sequence)
	v = value{atomic.LoadUint64(&m.words[at]), int64(atomic.LoadUint64(&m.words[at+1]))}
	sum := atomic.LoadUint64(&m.words[at+2])
	return v, sequence != 0 && sum == seal(m.sum, sequence, v)
}

// Wipe makes sure that a file holds no lease, even for programs that have mapped it, and removes the file. If
// no file exists, it does nothing.
func Wipe(path string) error {
	err := overwrite(path)
	if err = errors.Join(err, ignoreMissing(os.Remove(path))); err != nil {
		return fmt.Errorf("wipe lease page %s: %w", path, err)
	}
	return nil
}

// overwrite replaces a page by zeros: a page with sequence 0 has no value. If the disk has no room for that,
// overwrite cuts the file to length 0.
func overwrite(path string) error {
	f, err := open(path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNoFile) {
		return nil // a link has no content to wipe
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, Size), 0); err != nil {
		return f.Truncate(0)
	}
	return nil
}
