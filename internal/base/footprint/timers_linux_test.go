package footprint

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Without CAP_SYS_NICE the test checks only its own thread.
func TestTheTimersOfEveryThreadAreRelaxed(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	want := strconv.FormatInt(timerSlack.Nanoseconds(), 10)
	if chosen := slackIn(t, strconv.Itoa(unix.Gettid())); chosen != usualSlack {
		want = chosen
	}
	Limit()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		_, err := os.ReadFile(slackOf(thread.Name()))
		if errors.Is(err, fs.ErrPermission) && thread.Name() != strconv.Itoa(unix.Gettid()) {
			continue
		}
		if got := slackIn(t, thread.Name()); got != want {
			t.Errorf("thread %s: %s ns, want %s", thread.Name(), got, want)
		}
	}
}

func slackIn(t *testing.T, thread string) string {
	t.Helper()
	slack, err := os.ReadFile(slackOf(thread))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(slack))
}
