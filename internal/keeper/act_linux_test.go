package keeper

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openingHangs makes every open of the file hang until release is called.
func openingHangs(t *testing.T, path string) (release func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, which CI is: to hang an open by fanotify")
	}
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		t.Skipf("no fanotify here: %v", err)
	}
	release = sync.OnceFunc(func() { unix.Close(fd) }) // without a listener, the kernel lets all opens go on
	t.Cleanup(release)
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM, unix.AT_FDCWD, path); err != nil {
		t.Skipf("no fanotify here that can deny: %v", err)
	}
	return release
}

// K6: if no life follows, doyen act ends last. A disk that hangs delays it only for a moment.
func TestWhatActsEndsOnceTheRecordIsGoneOrTheDiskHangsForTooLong(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, hangsOn := range map[string]bool{"the disk hangs for a moment": false, "the disk hangs on": true} {
		t.Run(name, func(t *testing.T) {
			of := dead(t)
			of.Program = self
			release := openingHangs(t, of.Lock)
			k := keepGiven(t, nil, of, []string{"RECORD=" + of.Record}, "acting", of.Record, of.Pages)
			k.line("acts")
			k.send(k.cmd.Process.Pid, syscall.SIGHUP)
			k.line("signal") // the signal ends the life
			ends := make(chan string, 1)
			go func() {
				defer close(ends)
				for k.lines.Scan() {
					if record, ok := strings.CutPrefix(k.lines.Text(), "ends while there is a record: "); ok {
						ends <- record
						return
					}
				}
			}()
			if !hangsOn {
				select {
				case <-ends:
					t.Fatal("what acts ends before the record")
				case <-time.After(buryFor / 3):
				}
				release()
			}
			if record := <-ends; record != map[bool]string{false: "false", true: "true"}[hangsOn] {
				t.Errorf("when what acts ends there is a record: %q", record)
			}
			release()
			if code := k.code(); code != exitConfig {
				t.Errorf("exit code %d", code)
			}
			if _, err := os.Lstat(of.Record); err == nil {
				t.Error("there still is a record")
			}
		})
	}
}
