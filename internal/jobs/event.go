package jobs

import (
	"fmt"
	"time"
)

// Event is what a Job is informed of: one of the types that follow.
type Event any

type (
	// Leads: this host leads in a term, and the election's word is Text. It comes when a leadership begins, when
	// its term rises, and when a write was answered with another word.
	Leads struct {
		Term uint64
		Text string
	}
	// Follows: another host leads, and this host has read the word Text.
	Follows struct{ Text string }
	// Written: a write is acknowledged. Until then the caller repeats it, each time with the same ID of the
	// replaced word.
	Written struct{ Text string }
	// Ended: the command is dead, with all that it started.
	Ended struct {
		Result Result
		Code   int // the exit code; for TimedOut, the code that once exits with
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
	Write    string    // not empty: replace the word with this text, and send Written once that is acknowledged
	Start    *Start    // not nil: start the command before the deadline, and send Ended once it is dead
	Exit     *int      // end the campaign and exit
	HandOver string    // not empty: resign, for this reason
	Wake     time.Time // not zero: send Tick once the wall clock shows this time
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

// What is the kind of a report. Each comment names the fields of Report that are set.
type What string

const (
	Finish      What = "ended"        // an occurrence has ended: From, Try, Result, Code
	UnknownEnd  What = "unknown"      // nobody marked how an occurrence ended: From, Try, Result
	Skipped     What = "skipped"      // an occurrence is not started again: From, Try
	NotRun      What = "missed"       // N occurrences never run: N, From (the first), To (the last)
	Differs     What = "differs"      // the word has another spec or zone than this host: Detail
	Changed     What = "changed"      // the spec has changed: Detail, with the time from which the new spec counts
	Ahead       What = "ahead"        // the word's newest occurrence is more than an hour ahead of the clock: From, Detail
	ClockJumped What = "clock jumped" // the wall clock jumped, so this host hands over: no field
	Refused     What = "refused"      // the word is not this job's: Detail, with the reason
)

// Report is a line for people. An end or a miss is reported only once its write is acknowledged.
type Report struct {
	What     What
	From, To string
	N        int
	Try      int
	Result   Result
	Code     int
	Detail   string
	Again    bool // a former leader wrote this, and may have reported it
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
