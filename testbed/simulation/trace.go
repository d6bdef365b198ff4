package simulation

import (
	"fmt"
	"io"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/messages"
)

// record is one line of the trace. It is kept as data, and written as text only if somebody
// wants to read it.
type record struct {
	at    int64
	agent *agent
	life  uint32
	local election.Instant
	in    election.Input
	out   election.Output
	note  string // text, instead of a step
}

// trace keeps the newest records. If there is a live writer, it also writes each record there
// at once.
type trace struct {
	ring []record
	n    int
	live io.Writer
}

func (t *trace) wanted() bool { return t.live != nil || len(t.ring) > 0 }

func (t *trace) add(r record) {
	if t.live != nil {
		_, _ = fmt.Fprintln(t.live, r.String())
	}
	if len(t.ring) > 0 {
		t.ring[t.n%len(t.ring)] = r
	}
	t.n++
}

func (t *trace) lines() []string {
	var lines []string
	for i := max(0, t.n-len(t.ring)); i < t.n && len(t.ring) > 0; i++ {
		lines = append(lines, t.ring[i%len(t.ring)].String())
	}
	return lines
}

func (r record) String() string {
	at := time.Duration(r.at).Round(time.Microsecond).String()
	if r.agent == nil {
		return fmt.Sprintf("%-12s          -- %s", at, r.note)
	}
	who := fmt.Sprintf("%s/%d", r.agent.peer, r.life)
	if r.in == nil {
		return fmt.Sprintf("%-12s %-8s -- %s", at, who, r.note)
	}
	return fmt.Sprintf("%-12s %-8s [%d] %s%s", at, who, r.local, messages.Describe(r.in), messages.Output(r.out))
}
