package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/internal/calendar"
)

// cron handles the claim that a former leader left, passes over what is missed, and claims what is due.
func (j *Job) cron(now time.Time, d *draft) {
	w, clock := &d.word, now.Add(-j.offset)
	if w.Version == 0 { // J5
		*w = Word{Version: version, Kind: Cron, Spec: j.config.Spec, Zone: j.config.Zone, Done: stamp(clock)}
		return
	}
	done := moment(w.Done)
	if w.Spec != j.config.Spec || w.Zone != j.config.Zone {
		w.Spec, w.Zone = j.config.Spec, j.config.Zone
		// The new spec did not apply before, so of its occurrences only those still in time count.
		if from := clock.Add(-j.config.Late); from.After(done) {
			j.passOver(d, done, from)
			done, w.Done = from, stamp(from)
			d.reports = append(d.reports, Report{What: Changed, Detail: fmt.Sprintf("occurrences by the new spec count from %s on", w.Done)})
		}
	}
	latest := done
	if w.Run != nil && moment(w.Run.At).After(latest) {
		latest = moment(w.Run.At)
	}
	if latest.Sub(clock) > ahead { // J7
		if !j.warned {
			d.reports = append(d.reports, Report{What: Ahead, From: stamp(latest), Detail: "what is done is ahead of this host's clock; correct the clock, or use doyen jobs NAME --reset-done"})
		}
		j.warned = true
		d.wake = latest.Add(j.offset - ahead)
		return
	}
	if r := w.Run; r != nil { // J4
		j.unknown(now, d)
		if j.config.Rerun {
			j.claim(now, d, r.At)
			return
		}
		done = moment(w.Done)
	}
	j.due(now, done, d)
}

// passOver counts and reports what was due by the former spec between the two times, the later one included (J3).
func (j *Job) passOver(d *draft, done, until time.Time) {
	former, err := calendar.Parse(j.word.Spec, j.word.Zone)
	if err != nil {
		return
	}
	var missed Span
	for at, ok := former.Next(done); ok && !at.After(until) && missed.N < mostPassed; at, ok = former.Next(at) {
		if r := j.word.Run; r == nil || r.At != stamp(at) { // a claim is not missed
			missed.add(stamp(at))
		}
	}
	d.miss(missed)
}

// miss writes and reports that occurrences never run.
func (d *draft) miss(missed Span) {
	if missed.N > 0 {
		d.word.Missed = &missed
		d.word.count(Passed, missed.N)
		d.reports = append(d.reports, missed.report(false))
	}
}

// due claims what is due and in time, passes over what is missed (J6), or waits.
func (j *Job) due(now, done time.Time, d *draft) {
	clock, ready := now.Add(-j.offset), j.ready.Add(-j.offset)
	var missed Span
	var claim string
	at, ok := j.schedule.Next(done)
	for ; ok && !at.After(clock) && missed.N < mostPassed; at, ok = j.schedule.Next(at) {
		if claim != "" && j.config.Missed == All {
			break
		}
		missed.add(claim)
		if claim = stamp(at); clock.Sub(at) > j.config.Late || j.config.Missed == None && at.Before(ready) {
			missed.add(claim)
			claim = ""
		}
	}
	if missed.N >= mostPassed && claim != "" { // the write is full, so the next one handles later occurrences
		missed.add(claim)
		claim = ""
	}
	if missed.N > 0 { // J3
		d.word.Done = missed.To
		d.miss(missed)
	}
	switch {
	case claim != "":
		j.claim(now, d, claim)
	case ok:
		d.wake = at.Add(j.offset)
	}
}

// count adds n to Total. It copies the map, which copies of the word share.
func (w *Word) count(r Result, n int) {
	if w.Kind != Cron {
		return
	}
	total := maps.Clone(w.Total)
	if total == nil {
		total = map[Result]int{}
	}
	total[r] += n
	w.Total = total
}

func (s *Span) add(at string) {
	if at == "" {
		return
	}
	if s.N == 0 {
		s.From = at
	}
	s.N, s.To = s.N+1, at
}

// claim writes that an occurrence may start. It does not change Done (J3).
func (j *Job) claim(now time.Time, d *draft, at string) {
	w, try := &d.word, 1
	switch {
	case w.Run != nil && Compare(w.Run.At, at) == 0:
		try = w.Run.Try + 1
	case w.Last != nil && Compare(w.Last.At, at) == 0:
		try = w.Last.Try + 1
	}
	w.Run = &Run{At: at, Term: j.term, Try: try, Since: now}
	d.claims = true
}

// unknown reports an end that nobody marked. Unless the claim is to run again, unknown passes over it.
func (j *Job) unknown(now time.Time, d *draft) {
	w, r := &d.word, d.word.Run
	if !w.marked() {
		e := End{At: r.At, Try: r.Try, Result: Unknown, When: now}
		d.reports = append(d.reports, e.report(false))
		w.Last = &e
		w.count(Unknown, 1)
	}
	if j.config.Rerun && (j.config.Kind == Cron || Compare(r.At, j.config.Key) == 0) {
		return
	}
	d.reports = append(d.reports, Report{What: Skipped, From: r.At, Try: r.Try})
	w.Run, w.Unknown = nil, r.At
	w.settle(r.At)
}

// marked reports whether the end of the claim's command is in the word: it was stopped, and may run again.
func (w *Word) marked() bool {
	return w.Run != nil && w.Last != nil && w.Last.At == w.Run.At && w.Last.Try == w.Run.Try
}

// Runs returns the claim of an occurrence that may be running, or nil.
func (w *Word) Runs() *Run {
	if w.marked() {
		return nil
	}
	return w.Run
}

// settle raises Done to this occurrence, but never lowers it (J3). Compare also orders times.
func (w *Word) settle(at string) {
	if Compare(at, w.Done) > 0 {
		w.Done = at
	}
}

// once claims the key, or exits if the key is not to be run.
func (j *Job) once(now time.Time, d *draft) {
	w, key := &d.word, j.config.Key
	if w.Version == 0 {
		w.Version, w.Kind = version, j.config.Kind
	}
	mine, later := false, false // the word has a claim of this key, or of a later one
	if r := w.Run; r != nil {
		mine, later = Compare(r.At, key) == 0, Compare(r.At, key) > 0
		if !mine && !later { // an earlier key
			j.unknown(now, d)
		}
	}
	code, settled := j.settled(*w)
	switch {
	case settled && !later:
		d.exit = &code
	case later, mine && !j.config.Rerun: // the claim stays for a call that retries it
		if later || !w.marked() {
			d.reports = append(d.reports, Report{What: UnknownEnd, From: w.Run.At, Try: w.Run.Try})
		}
		d.exit = new(ExitUnknown)
	default:
		if mine {
			j.unknown(now, d)
		}
		j.claim(now, d, key)
	}
}

// settled returns the exit code of a key that must not run; false: the key may run.
func (j *Job) settled(w Word) (code int, ok bool) {
	if w.Done == "" {
		return 0, false
	}
	switch Compare(j.config.Key, w.Done) {
	case 0:
		if w.Unknown != w.Done {
			return 0, true
		}
		return ExitUnknown, !j.config.Rerun
	case -1:
		if j.config.AllowOlder || slices.ContainsFunc(w.Ends, func(e string) bool { return Compare(e, j.config.Key) == 0 }) {
			return 0, true
		}
		return ExitSkipped, true
	}
	return 0, false
}
