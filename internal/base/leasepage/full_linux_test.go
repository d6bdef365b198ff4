package leasepage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/leasepage"
	"github.com/doyen-election/doyen/testbed/smalldisk"
)

func TestMain(m *testing.M) { smalldisk.Main(m, "16k", onFullDisk) }

// On a full disk, creating a page fails with a clear error, and pages made before go on.
func TestAFullDiskGivesAnErrorAndNothingWorse(t *testing.T) { smalldisk.Run(t) }

func onFullDisk(dir string) error {
	var made []*leasepage.Writer
	for i := range 10 {
		w, err := leasepage.Create(dir, fmt.Sprintf("e%d", i), 1)
		if err != nil {
			break
		}
		made = append(made, w)
	}
	if len(made) == 0 || len(made) > 4 {
		return fmt.Errorf("%d pages fit on a disk for four", len(made))
	}
	if left, _ := filepath.Glob(dir + "/.new*"); len(left) > 0 {
		return fmt.Errorf("left behind: %v", left)
	}
	for _, w := range made {
		if err := w.Set(1, alarm.Now()+int64(time.Hour)); err != nil {
			return err
		}
		r, err := leasepage.Open(w.Path())
		if err != nil || !r.Valid() {
			return fmt.Errorf("a page made before is not valid: %w", err)
		}
		// The page has a hole that the full disk can't fill, so a store to it faults.
		if err := punched(w, dir); err != nil {
			return err
		}
		if r.Valid() {
			return fmt.Errorf("the lease of a page that can't be written is valid")
		}
	}
	return nil
}

func punched(w *leasepage.Writer, dir string) error {
	f, err := os.OpenFile(w.Path(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, leasepage.Size); err != nil {
		return err
	}
	_ = os.WriteFile(filepath.Join(dir, "filler"+filepath.Base(w.Path())), make([]byte, 1<<20), 0o600) // writes as much as fits
	if err := w.Set(2, alarm.Now()+int64(time.Hour)); err == nil {
		return fmt.Errorf("a page was written where there is no room")
	}
	return nil
}
