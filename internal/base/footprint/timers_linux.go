package footprint

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usualSlack is the timer slack that the kernel gives a process by default, in ns.
const usualSlack = "50000"

// relaxTimers sets the timer slack of every thread that still has the default. New threads and started
// processes inherit the slack. To set it for another thread than the caller's needs CAP_SYS_NICE. A service
// manager can set it from the start (TimerSlackNSec= of systemd).
func relaxTimers(slack time.Duration) {
	for range 2 { // threads may start during the first round
		threads, _ := os.ReadDir("/proc/self/task")
		for _, t := range threads {
			if now, _ := os.ReadFile(slackOf(t.Name())); strings.TrimSpace(string(now)) == usualSlack {
				_ = os.WriteFile(slackOf(t.Name()), []byte(strconv.FormatInt(slack.Nanoseconds(), 10)), 0)
			}
		}
	}
}

func slackOf(thread string) string { return filepath.Join("/proc", thread, "timerslack_ns") }
