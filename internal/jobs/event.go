package jobs

import (
	"fmt"
	"time"
)

// Event is what a Job is informed of: one of the types that follow.
type Event any

type (
	// Leads: this host leads in a term in which the election's word is Text. It comes when a leadership
	// begins, when its term rises, and when a write was answered with another word.
	Leads struct {
		Term uint64
		Text string
	}
	// Follows: another host leads, and Text is the word as this host has read it.
	Follows struct{ Text string }
	// Written: a Write is acknowledged. A write that is not confirmed is repeated by the caller, with
	// the same ID of the word that it replaces.
	Written struct{ Text string }
	// Ended: the command is dead, with all that it started.
	Ended struct {
		Result Result
		Code   int // the exit code; for TimedOut, the code with which once has to exit
	}
	// NotStarted: the command of the last Start was not started, and will not be.
	NotStarted struct{}
	// Stopping: the leadership is about to end. The caller waits until Idle before it gives the receipt.
	Stopping struct{}
	// Lost: the leadership has ended, and the command is dead.
	Lost struct{}
	// Jumped: the wall clock jumped by a minute or more against CLOCK_BOOTTIME.
	Jumped struct{}
	// Tick: the time Output.Wake has come. A Tick at any other time is harmless.
	Tick struct{}
)

// Output is what to do, in this order.
type Output struct {
	Reports  []Report
	Write    string    // not empty: replace the word with this text, then Written
	Start    *Start    // start the command, under an unexpired deadline, then Ended
	Exit     *int      // end the campaign and exit
	HandOver string    // not empty: resign, for this reason
	Wake     time.Time // not zero: Tick no later than when the wall clock shows this
}

// Start is a command to start.
type Start struct {
	Occurrence string
	Try        int
	Env        []string // NAME=value, without DOYEN_TERM: the term may rise before the start
}

func (j *Job) start(r Run) *Start {
	key := j.config.Name
	if j.config.Kind != Key {
		key += "/" + r.At
	}
	return &Start{Occurrence: r.At, Try: r.Try, Env: []string{
		"DOYEN_OCCURRENCE=" + r.At, fmt.Sprintf("DOYEN_TRY=%d", r.Try), "DOYEN_KEY=" + key,
	}}
}

// What is what a report is about. The comments name the fields of Report that it fills in.
type What string

const (
	Finish      What = "ended"        // From, Try, Result, Code
	UnknownEnd  What = "unknown"      // From, Try: nobody marked how it ended
	Skipped     What = "skipped"      // From, Try: it is not started again
	NotRun      What = "missed"       // N occurrences, From the first To the last
	Differs     What = "differs"      // Detail: the word's spec and zone, and this host's
	Changed     What = "changed"      // Detail: since when occurrences by the new spec count
	Ahead       What = "ahead"        // From: the word's newest occurrence, more than an hour ahead of the clock
	ClockJumped What = "clock jumped" // none: the wall clock jumped, so this host hands over
	Refused     What = "refused"      // Detail: why the word is not this job's
)

// Report is a line for people, and for metrics. It follows the write that makes it durable.
type Report struct {
	What     What
	From, To string
	N        int
	Try      int
	Result   Result
	Code     int
	Detail   string
	Again    bool // a former leader has written it, and may have reported it
}

func (e End) report(again bool) Report {
	r := Report{What: Finish, From: e.At, Try: e.Try, Result: e.Result, Code: e.Code, Again: again}
	if e.Result == Unknown {
		r.What = UnknownEnd
	}
	return r
}

func (s Span) report(again bool) Report {
	return Report{What: NotRun, From: s.From, To: s.To, N: s.N, Again: again}
}
