package exhaustive

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/election"
)

// epoch is what all clocks read at the root.
const epoch election.Instant = 1 << 40

func timeOf(d election.Instant) time.Duration { return time.Duration(d).Round(time.Microsecond) }

// note adds a line to the log, if there is one.
func (w *world) note(format string, args ...any) {
	if w.log != nil {
		*w.log = append(*w.log, fmt.Sprintf(format, args...))
	}
}
