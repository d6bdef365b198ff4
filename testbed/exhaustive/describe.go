package exhaustive

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/doyen-election/doyen/election"
)

// epoch is what all clocks read at the root.
const epoch election.Instant = 1 << 40

func timeOf(d election.Instant) time.Duration { return time.Duration(d).Round(time.Microsecond) }

// note adds a line to the log, if somebody wants to read it.
func (w *world) note(format string, args ...any) {
	if w.log != nil {
		*w.log = append(*w.log, fmt.Sprintf(format, args...))
	}
}

// describe writes a message or an input in a few words.
func describe(x any) string {
	switch x := x.(type) {
	case election.Received:
		return fmt.Sprintf("<- %s %s", x.From, describe(x.Message))
	case election.VoteRequest:
		return fmt.Sprintf("VoteRequest %s term %d", x.Holder, x.Term)
	case election.VoteRefusal:
		return fmt.Sprintf("VoteRefusal term %d: reason %d, granted %d to %s", x.Term, x.Reason, x.Granted, x.GrantedTo)
	case election.Report:
		return fmt.Sprintf("Report %v", x.Standings)
	case election.ViewChanged:
		return "ViewChanged"
	}
	return fmt.Sprintf("%s %+v", reflect.TypeOf(x).Name(), x)
}

func describeOutput(o election.Output) string {
	var b strings.Builder
	for _, w := range o.Withdraw {
		fmt.Fprintf(&b, "\n    withdraws from term %d: %s", w.Term, w.Reason)
	}
	if o.Persist != nil {
		fmt.Fprintf(&b, "\n    writes %+v", o.Persist.State.Grants)
	}
	for _, s := range o.Send {
		fmt.Fprintf(&b, "\n    -> %s %s", s.To, describe(s.Message))
	}
	for _, a := range o.Announce {
		fmt.Fprintf(&b, "\n    announces %s: %s term %d", a.Event, a.Leader, a.Term)
	}
	return b.String()
}
