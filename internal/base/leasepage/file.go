package leasepage

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
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

// versionError is the version of a page that this package can't read.
type versionError uint32

func (e versionError) Error() string {
	return fmt.Sprintf("its layout has version %d, this program reads version %d", uint32(e), Version)
}

func parseBoot(text string) (HostBoot, error) {
	var b HostBoot
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), "-", ""))
	if err != nil || len(raw) != len(b) {
		return b, fmt.Errorf("read the host's boot: %.80q is not a UUID", text)
	}
	copy(b[:], raw)
	return b, nil
}

func writeZeros(f *os.File) error {
	_, err := f.WriteAt(make([]byte, Size), 0)
	return err
}

// open opens a regular file. It refuses a link, and does not wait at a pipe that nobody
// writes.
func open(path string, flags int) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, nil, errNoFile
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// mapWords maps a page until unmap is called.
func mapWords(f *os.File, protection int) (*words, error) {
	at, err := unix.MmapPtr(int(f.Fd()), 0, nil, Size, protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map it: %w", err)
	}
	return (*words)(at), nil
}

func unmap(w *words) {
	_ = unix.MunmapPtr(unsafe.Pointer(w), Size) // fails only for what is not a mapping
}

// Wipe makes sure that a file holds no lease any more, also for programs that have it
// mapped, and removes it. Where there is no file, there is nothing to do.
func Wipe(path string) error {
	err := overwrite(path)
	if removeErr := os.Remove(path); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	if err != nil {
		return fmt.Errorf("wipe lease page %s: %w", path, err)
	}
	return nil
}

// overwrite replaces a page by zeros: with the sequence 0 it has no value. If the disk has no
// room even for that, the file is cut to nothing.
func overwrite(path string) error {
	f, info, err := open(path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errNoFile) {
		return nil // a link has no content to wipe
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() == 0 || writeZeros(f) == nil {
		return nil
	}
	return f.Truncate(0)
}
