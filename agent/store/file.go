package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// replaceFile puts data at path so that after a crash the old content or the
// new one is there: written beside it, synced, renamed over it, and the
// directory synced, without which the rename itself may be forgotten. What a
// crash left at the temporary name is overwritten. A failed sync is never
// repeated on the same file: the kernel may have dropped the pages; the caller
// writes everything anew.
func replaceFile(path string, data []byte) error {
	temp := path + tempSuffix
	if err := writeSynced(temp, data); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("put file in place: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, data []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Chmod(0o600); err != nil {
		return fmt.Errorf("protect file: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync file: %w", err)
	}
	return nil
}

func syncDir(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
