package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

// Files are the operations of a store on the files of its directory, each by its name. The
// simulation implements them as a disk that forgets, at a power cut, what was not synced.
type Files interface {
	Open(name string) (File, error)   // opens for reading; if the file is missing, the error matches fs.ErrNotExist
	Create(name string) (File, error) // opens for writing; empties a file that exists
	Rename(from, to string) error
	SyncDir() error
	// Names reports whether the name still belongs to the open file, and not to another one. If no file
	// has the name, the error matches fs.ErrNotExist.
	Names(name string, f File) (bool, error)
	Size(f File) (int64, error) // in bytes, also what other processes have written
}

// File is an open file.
type File interface {
	io.ReadWriteCloser
	Sync() error
}

// directory implements Files with a real directory.
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

// Open opens only regular files, since opening another kind may block.
func (d directory) Open(name string) (File, error) {
	path := d.path(name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, &Error{Path: path, Problem: cause(err), Err: err}
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Path: path, Problem: "is not a regular file", Hint: moveAway}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Problem: cause(err), Hint: "it must be readable by this agent's user", Err: err}
	}
	return f, nil
}

func (d directory) Create(name string) (File, error) {
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect file: %w", err), f.Close())
	}
	return f, nil
}

func (d directory) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d directory) SyncDir() error { return SyncDir(string(d)) }

func (d directory) Names(name string, f File) (bool, error) {
	there, err := os.Stat(d.path(name))
	if err != nil {
		return false, err
	}
	own, err := f.(*os.File).Stat()
	return err == nil && os.SameFile(own, there), err
}

func (d directory) Size(f File) (int64, error) {
	info, err := f.(*os.File).Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// SyncDir makes the new and renamed files of a directory durable.
func SyncDir(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return wrap.Error(d.Sync(), "sync directory")
}

// readAll reads an open file of at most limit bytes.
func readAll(f File, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, &Error{Path: name, Problem: cause(err), Err: err}
	}
	return data, nil
}

// cause returns the system's error without the path, which Error has already.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
