package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/doyen-election/doyen/internal/calendar"
)

const (
	// MaxText is the greatest size of a word, in bytes.
	MaxText = 1024
	// MaxName is the greatest size of a key or a spec, in bytes: a word has up to four keys, besides Ends.
	MaxName = 200

	version = 1
)

// Kind is the kind of job that a word is about.
type Kind string

const (
	Cron   Kind = "cron"   // its occurrences are times, in UTC and as RFC 3339 without fractions
	Key    Kind = "key"    // one occurrence, whose key is the election's name
	Series Kind = "series" // its occurrences are keys, in the order of Compare
)

// Result is how an occurrence ended.
type Result string

const (
	Finished Result = "finished"  // the command exited with 0
	Failed   Result = "failed"    // it exited with another code
	TimedOut Result = "timed out" // it was stopped because it took too long
	Stopped  Result = "stopped"   // it was stopped because the leadership was about to end
	Passed   Result = "missed"    // it never ran; only in Word.Total
	Unknown  Result = "unknown"   // the host that started it did not mark its end
)

// Word is the durable state of a job.
type Word struct {
	Version int    `json:"v"`
	Kind    Kind   `json:"kind"`
	Spec    string `json:"spec,omitempty"` // Cron: the spec of the last leader
	Zone    string `json:"tz,omitempty"`   // Cron: "" is UTC
	// Done: all occurrences up to this one have ended or were passed over. Invariant (J3): only ResetDone lowers it.
	Done    string `json:"done,omitempty"`
	Run     *Run   `json:"run,omitempty"`     // the claimed occurrence, which may have started
	Last    *End   `json:"last,omitempty"`    // the occurrence that ended last
	Unknown string `json:"unknown,omitempty"` // the last occurrence that was passed over with an unknown end
	Missed  *Span  `json:"missed,omitempty"`  // Cron: what the last write passed over
	// Total counts how occurrences ended, and those that were missed. Cron only.
	Total map[Result]int `json:"total,omitempty"`
	// Ends are the newest finished keys below Done, as many as fit. Series only.
	Ends []string `json:"ends,omitempty"`
}

// Run is the claim of an occurrence.
type Run struct {
	At    string    `json:"at"`
	Term  uint64    `json:"term"`
	Try   int       `json:"try"`   // from 1
	Since time.Time `json:"since"` // by the clock of the host that claimed it
}

// End is an occurrence that has ended.
type End struct {
	At     string    `json:"at"`
	Try    int       `json:"try"`
	Result Result    `json:"end"`
	Code   int       `json:"code,omitempty"` // the command's exit code
	When   time.Time `json:"when"`
}

// Span is how many occurrences never ran, with the first and the last.
type Span struct {
	N    int    `json:"n"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Parse reads a word's text. The empty text means that no host has led the job yet. Parse refuses a text that
// no job has written.
func Parse(text string) (Word, error) {
	var w Word
	if text == "" {
		return w, nil
	}
	err := json.Unmarshal([]byte(text), &w)
	switch {
	case err != nil || w.Version == 0:
		return Word{}, errors.New("the election's word is not that of a job; use another name")
	case w.Version != version:
		return Word{}, fmt.Errorf("the election's word has format %d, and this version knows %d; use the version that wrote it", w.Version, version)
	case w.Kind != Cron && w.Kind != Key && w.Kind != Series:
		return Word{}, fmt.Errorf("the election's word is a job of kind %q, which this version does not know", w.Kind)
	}
	if w.Kind == Cron {
		if _, err = time.Parse(time.RFC3339, w.Done); err == nil && w.Run != nil {
			_, err = time.Parse(time.RFC3339, w.Run.At)
		}
		if err != nil {
			return Word{}, fmt.Errorf("the election's word is damaged: %w", err)
		}
	}
	return w, nil
}

// Text returns the word as at most MaxText bytes of JSON. Ends that do not fit are dropped, the
// oldest first.
func (w Word) Text() string {
	for {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(w); err != nil {
			return "" // not reached: only a year above 9999 can't be encoded
		}
		if b.Len()-1 <= MaxText || len(w.Ends) == 0 {
			return strings.TrimSuffix(b.String(), "\n")
		}
		w.Ends = w.Ends[1:]
	}
}

// Next returns when a cron job's next occurrence after Done is due, by the spec in the word; false if never, or
// for another kind of job.
func (w Word) Next() (time.Time, bool) {
	s, err := calendar.Parse(w.Spec, w.Zone)
	if w.Kind != Cron || err != nil {
		return time.Time{}, false
	}
	return s.Next(moment(w.Done))
}

// ResetDone returns the text with Done set to now. It refuses a word in which neither Done nor the claim is in
// the future, and a claim of the present term, which may be running. An older claim gets an unknown end.
func ResetDone(text string, now time.Time, term uint64) (string, error) {
	w, err := Parse(text)
	switch {
	case err != nil:
	case w.Kind != Cron:
		err = errors.New("it is not a cron job; only a cron job has times that can be ahead")
	case w.Run != nil && w.Run.Term == term:
		err = fmt.Errorf("its occurrence %s was started in the present term: wait until it has ended", w.Run.At)
	case !moment(w.Done).After(now) && (w.Run == nil || !moment(w.Run.At).After(now)):
		err = fmt.Errorf("it is done up to %s, which is not in the future", w.Done)
	}
	if err != nil {
		return "", fmt.Errorf("reset what is done: %w", err)
	}
	if r := w.Runs(); r != nil {
		w.Last = &End{At: r.At, Try: r.Try, Result: Unknown, When: now.UTC().Truncate(time.Second)}
		w.count(Unknown, 1)
	}
	w.Done, w.Run = stamp(now), nil
	return w.Text(), nil
}

// Compare orders keys as text, but digits in them as numbers. It returns -1, 0 or 1. Keys that differ only in
// leading zeros are equal.
func Compare(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return strings.Compare(a[:1], b[:1])
			}
			a, b = a[1:], b[1:]
			continue
		}
		m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if len(m) != len(n) {
			return map[bool]int{true: -1, false: 1}[len(m) < len(n)]
		}
		if c := strings.Compare(m, n); c != 0 {
			return c
		}
		a, b = a[x:], b[y:]
	}
	return strings.Compare(a, b)
}

// digits returns how many bytes at the beginning are digits.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// check refuses a key or spec that does not fit into a word as it is.
func check(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("the %s is empty", what)
	case len(s) > MaxName:
		return fmt.Errorf("the %s has %d bytes; at most %d", what, len(s), MaxName)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }):
		return fmt.Errorf("the %s %q has control characters, quotes or backslashes; write it without", what, s)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// moment reads a stamp of a word that Parse has checked.
func moment(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}
