package footprint

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usualSlack is what the kernel gives a process, in ns, unless somebody chose
// otherwise.
const usualSlack = "50000"

// relaxTimers sets the timer slack of every thread there is, unless somebody
// chose one; later ones inherit it, and so do the processes they start. For
// threads other than the caller's that takes CAP_SYS_NICE. A service manager can
// set it from the start (TimerSlackNSec= of systemd).
func relaxTimers(slack time.Duration) {
	for range 2 { // some may begin during the first time
		threads, _ := os.ReadDir("/proc/self/task")
		for _, t := range threads {
			if now, _ := os.ReadFile(slackOf(t.Name())); strings.TrimSpace(string(now)) == usualSlack {
				_ = os.WriteFile(slackOf(t.Name()), []byte(strconv.FormatInt(slack.Nanoseconds(), 10)), 0)
			}
		}
	}
}

func slackOf(thread string) string { return filepath.Join("/proc", thread, "timerslack_ns") }
