package jobs

import (
	"cmp"
	"fmt"
)

var meanings = map[int]string{
	0:           "finished before: nothing is started",
	ExitRunning: "another host runs it",
	ExitUnknown: "its starter died or was stopped, and nobody knows how far it got: --retry runs it again",
	ExitSkipped: "a higher key is settled, so this one is skipped",
}

// Meaning returns why `doyen once` exits with a code although it has started nothing.
func Meaning(code int) string { return cmp.Or(meanings[code], fmt.Sprintf("exit %d", code)) }

// Line returns the report as a line for people. name is the job's name.
func (r Report) Line(name string) string {
	at, again := r.From, ""
	if at == name {
		at = "it"
	}
	if r.Try > 1 {
		at += fmt.Sprintf(" (try %d)", r.Try)
	}
	if r.Again {
		again = ", as a former leader wrote"
	}
	switch r.What {
	case Finish:
		how := string(r.Result)
		if r.Result == Failed {
			how = fmt.Sprintf("failed with status %d", r.Code)
		}
		return fmt.Sprintf("%s: %s %s%s", name, at, how, again)
	case UnknownEnd:
		return fmt.Sprintf("%s: nobody knows how %s ended: what started it died first%s", name, at, again)
	case Skipped:
		return fmt.Sprintf("%s: %s is not started again", name, at)
	case NotRun:
		if r.N == 1 {
			return fmt.Sprintf("%s: %s never ran, it was missed%s", name, r.From, again)
		}
		return fmt.Sprintf("%s: %d occurrences never ran, they were missed: %s to %s%s", name, r.N, r.From, r.To, again)
	case Ahead:
		return fmt.Sprintf("%s: nothing runs until this host's clock reaches %s, up to which all is done: correct the clock, or, if the clock was wrong before, run `doyen jobs %s --reset-done`", name, r.From, name)
	case ClockJumped:
		return fmt.Sprintf("%s: this host's clock jumped by a minute or more", name)
	}
	return name + ": " + cmp.Or(r.Detail, string(r.What))
}
