package record

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/smalldisk"
)

func TestMain(m *testing.M) { smalldisk.Main(m, "2m", inFullTmpfs) }

// On a full tmpfs no record is kept. One line reports that, and no signal kills the process.
func TestAFullTmpfsIsAProblemAndNothingWorse(t *testing.T) { smalldisk.Run(t) }

func inFullTmpfs(dir string) error {
	filler := dir + "/filler"
	fill := func(leave int) error { return os.WriteFile(filler, make([]byte, 2<<20-leave), 0o600) }
	for leave := compactAt; leave > compactAt-8*4096; leave -= 4096 { // one size that fits, then sizes that leave too little
		if err := fill(leave); err != nil {
			return err
		}
		r, _, err := Open(config(dir, 7))
		if leave == compactAt {
			if err != nil {
				return fmt.Errorf("it should fit: %w", err)
			}
			if err := errors.Join(r.Destroy(), r.Close()); err != nil {
				return err
			}
			continue
		}
		if r != nil || !errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), "\n") {
			return fmt.Errorf("with %d bytes of memory: %v, %v", leave, r, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			return fmt.Errorf("left behind: %v", left)
		}
	}
	return errors.Join(fill(compactAt), full(dir))
}

// full writes to a record on a tmpfs without room for a second file. The log can't be rewritten: it becomes longer
// until its memory is used up, and then the record ends.
func full(dir string) error {
	r, _, err := Open(config(dir, 8))
	if err != nil {
		return err
	}
	l := aThousand()
	for range 40 { // less than 1 MiB
		for i := range l.Rows {
			l.Rows[i].Until += election.Instant(1 + i%2)
		}
		if r.Write(l); r.failed != nil {
			return fmt.Errorf("at %d bytes: %w", r.end, r.failed)
		}
	}
	if err := r.Close(); err != nil {
		return err
	}
	r, past, err := Open(config(dir, 9))
	if err != nil || len(past.Rows) != 1000 {
		return fmt.Errorf("gone on with %+v, %w", past, err)
	}
	for range 100 {
		for i := range l.Rows {
			l.Rows[i].Until += election.Instant(1 + i%2)
		}
		r.Write(l)
	}
	if !errors.Is(r.failed, unix.ENOSPC) {
		return fmt.Errorf("a record was written where there is no memory: %w", r.failed)
	}
	_ = r.Close()
	if _, past, _ := Open(config(dir, 10)); past != nil {
		return fmt.Errorf("gone on with %+v", past)
	}
	return nil
}
