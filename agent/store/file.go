package store

import (
	"errors"
	"fmt"
	"io/fs"
)

// replaceFile writes a file so that a crash leaves the old content or the new one. It writes a
// temporary file, syncs it, gives it the name, and syncs the directory, so that the rename is not
// forgotten. It overwrites a temporary file that a crash has left. After a failed sync it never
// syncs the same file again, since the kernel may have dropped the pages: the caller writes
// everything again. If the new file has got the name, it is returned, even with an error.
func replaceFile(files Files, name string, data []byte) (File, error) {
	temp := name + tempSuffix
	f, err := writeSynced(files, temp, data)
	if err != nil {
		return nil, err
	}
	if err := files.Rename(temp, name); err != nil {
		return nil, errors.Join(fmt.Errorf("put file in place: %w", err), f.Close())
	}
	return f, files.SyncDir()
}

func writeSynced(files Files, name string, data []byte) (_ File, err error) {
	f, err := files.Create(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return nil, fmt.Errorf("write file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("sync file: %w", err)
	}
	return f, nil
}

// writeFile is replaceFile for callers that do not need the file open.
func writeFile(files Files, name string, data []byte) error {
	f, err := replaceFile(files, name, data)
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

// syncFound makes the files durable that a start is about to read. An earlier process run may have
// died between a rename and its sync, or the directory may have been copied. Then a power cut could
// still destroy the files, and the promises in them would be lost. This process run keeps these promises
// without writing them again.
func syncFound(files Files, names ...string) error {
	for _, name := range names {
		if err := syncFile(files, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := files.SyncDir(); err != nil {
		return unsynced("", err)
	}
	return nil
}

func syncFile(files Files, name string) (err error) {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil {
		return unsynced(name, err)
	}
	return nil
}

func unsynced(name string, err error) error {
	return &Error{Path: name, Problem: "can't be synced to the disk, so a power cut could lose promises: " + cause(err),
		Hint: "check the disk of --data-dir, and the kernel's log", Err: err}
}
