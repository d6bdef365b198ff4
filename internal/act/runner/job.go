package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/jobs"
)

const (
	// writeAgain is the wait before a write is repeated that got no answer or a temporary refusal.
	writeAgain = 250 * time.Millisecond
	// jump is how far the wall clock must move against CLOCK_BOOTTIME, between two comparisons, to count as
	// jumped.
	jump = time.Minute
)

// lookEvery is how often the wall clock is compared with CLOCK_BOOTTIME, and the word read again. Tests shorten it.
var lookEvery = 30 * time.Second

// task is a job whose occurrences the runner starts, and the word in which the job keeps its state.
type task struct {
	*jobs.Job
	word     api.Word         // the word as last read or written
	term     uint64           // the term of which the job was informed last
	writes   uint64           // counts writes, so that the answer to an earlier one is ignored
	asked    bool             // a write waits for its answer
	again    *api.WordRequest // a write to repeat
	againAt  int64
	due      *jobs.Start // the occurrence to be started; nil: none
	wake     time.Time   // when to send the job a Tick, by the wall clock; zero: never
	apart    int64       // wall clock minus CLOCK_BOOTTIME at the last comparison, in nanoseconds
	lookAt   int64
	stopping bool   // the job was informed that the leadership ends
	settleBy int64  // how long the receipt may wait for the write of the job's end; renewals don't extend this
	refused  string // the reason for the present repetitions, as last reported
}

// advise informs the job of an event, and carries out the job's output.
func (r *runner) advise(e jobs.Event) {
	if r.task == nil {
		return
	}
	if _, known := e.(jobs.Jumped); !known && r.leading && r.task.term != 0 {
		was := r.task.apart
		if r.task.apart = apart(); jumped(was, r.task.apart) {
			r.advise(jobs.Jumped{})
		}
	}
	out := r.task.Step(time.Now(), e)
	for _, report := range out.Reports {
		r.say("%s", report.Line(r.Election))
	}
	r.task.wake = out.Wake
	if out.Write != "" {
		r.write(api.WordRequest{Term: r.term, If: r.task.word.WordID, Text: out.Write})
	}
	if out.Start != nil {
		r.task.due = out.Start
	}
	if out.Exit != nil {
		if len(out.Reports) == 0 || *out.Exit == jobs.ExitUnknown {
			r.say("%s: %s", r.Election, jobs.Meaning(*out.Exit))
		}
		r.ending, r.status = true, *out.Exit
	}
	if out.HandOver != "" {
		r.leading, r.over, r.why = false, true, out.HandOver
		r.say("%s: letting another host lead %s", out.HandOver, r.Election)
	}
}

// begin informs the job that this host leads. If the term rises during a write, the job is informed only after
// the write's outcome: the write may succeed.
func (r *runner) begin(word *api.Word, began bool) {
	t := r.task
	switch {
	case t == nil || !began && (t.term == r.term || t.asked || t.again != nil):
		return
	case began:
		t.word = api.Word{}
		if word != nil {
			t.word = *word
		}
		t.apart, t.lookAt = apart(), 0
	}
	t.term = r.term
	r.advise(jobs.Leads{Term: r.term, Text: t.word.Text})
}

func apart() int64 { return time.Now().UnixNano() - alarm.Now() }

// jumped compares two results of apart, and reports whether the wall clock jumped between them.
func jumped(was, apart int64) bool { return time.Duration(apart-was).Abs() >= jump }

func (r *runner) write(q api.WordRequest) {
	t := r.task
	t.writes++
	t.asked, t.again = true, nil
	n, s := t.writes, r.candidacy
	go func() {
		ctx, cancel := context.WithTimeout(r.ctx, standTimeout)
		defer cancel()
		id, err := s.Write(ctx, q)
		r.call(func() {
			if n == t.writes {
				r.wrote(q, id, err)
			}
		})
	}()
}

func (r *runner) wrote(q api.WordRequest, id api.WordID, err error) {
	t := r.task
	t.asked = false
	refused, _ := errors.AsType[*client.APIError](err)
	switch {
	case err == nil:
		t.word, t.refused = api.Word{WordID: id, Text: q.Text}, ""
		r.advise(jobs.Written{Text: q.Text})
	case refused != nil && refused.Code == api.CodeWordChanged:
		t.word = api.Word{}
		if refused.Word != nil {
			t.word = *refused.Word
		}
		t.term = r.term
		r.advise(jobs.Leads{Term: r.term, Text: t.word.Text}) // an earlier answer may have been lost: then the present word is the text of this write
	case refused != nil && refused.Code == api.CodeNoQuorum:
		r.say("%s: %s", r.Election, refused.Message)
		r.ending, r.status, t.stopping = true, jobs.ExitUsage, true // so the receipt waits for no write
	default:
		t.again, t.againAt = &q, alarm.Now()+int64(writeAgain)
		if text := err.Error(); refused != nil && text != t.refused && r.leading {
			t.refused = text
			r.say("can't write the word of %s: %s; trying again", r.Election, text)
		}
	}
	if r.leading {
		r.begin(nil, false)
	}
}

func (r *runner) tick(now int64) {
	t := r.task
	if t == nil || !r.owed || now >= r.until {
		return
	}
	if t.again != nil && now >= t.againAt && !r.resuming {
		t.again.Term = r.term // the term may have risen; the text stays, since an earlier try may have succeeded
		r.write(*t.again)
	}
	if !r.leading || r.ending {
		return
	}
	if now >= t.lookAt {
		t.lookAt = now + int64(lookEvery)
		go r.readAgain(r.candidacy, t.writes)
		r.advise(jobs.Tick{}) // advise compares the clocks
	} else if !t.wake.IsZero() && !time.Now().Before(t.wake) {
		r.advise(jobs.Tick{})
	}
}

// readAgain reads the word again, since `doyen jobs --reset-done` may have replaced it.
func (r *runner) readAgain(of *client.Candidacy, writes uint64) {
	ctx, cancel := context.WithTimeout(r.ctx, standTimeout)
	defer cancel()
	defer r.Client.Close()
	read, err := r.Client.Word(ctx, r.Election)
	if err != nil || read.Word == nil {
		return
	}
	r.call(func() {
		t := r.task
		if of == r.candidacy && r.leading && writes == t.writes && !t.asked && t.again == nil && r.state == idle && t.word != *read.Word {
			t.word = *read.Word
			r.advise(jobs.Leads{Term: r.term, Text: t.word.Text})
		}
	})
}

// jobAt is when to call tick. While this host leads, that is at least every lookEvery, since the wall clock may
// jump.
func (r *runner) jobAt(now int64) int64 {
	t, wake := r.task, never
	if t == nil || !r.owed {
		return wake
	}
	if t.again != nil && !r.resuming {
		wake = t.againAt
	}
	if t.stopping {
		wake = min(wake, t.settleBy)
	}
	if !r.leading || r.ending {
		return wake
	}
	if !t.wake.IsZero() {
		wake = min(wake, now+max(0, int64(time.Until(t.wake))))
	}
	return min(wake, max(now, t.lookAt))
}

// settling informs the job that the leadership ends. It returns true while the receipt has to wait: the job's
// end is not written yet, and the lease has not ended.
func (r *runner) settling(now int64) bool {
	if r.task == nil {
		return false
	}
	if !r.task.stopping {
		r.task.stopping, r.task.settleBy = true, r.until
		r.advise(jobs.Stopping{})
	}
	r.unstarted()
	return !r.task.Idle() && r.candidacy != nil && now < min(r.until, r.task.settleBy)
}

// unstarted informs the job that its last claimed occurrence was not started. The job then removes the claim,
// so that the next leader knows that the occurrence did not run.
func (r *runner) unstarted() {
	if r.task != nil && r.task.due != nil {
		r.task.due = nil
		r.advise(jobs.NotStarted{})
	}
}

// marked informs the job that its command is dead.
func (r *runner) marked(result jobs.Result, status int) {
	if result == jobs.Finished && status != 0 {
		result = jobs.Failed
	}
	r.task.due = nil
	if r.ending && r.Status {
		if r.status = status; result == jobs.Stopped && status == 0 {
			r.status = jobs.ExitUnknown // it was asked to stop and exited with 0, so nobody knows whether it had finished its work
		}
	}
	if result == jobs.Finished || result == jobs.Failed {
		r.say("%s ended with status %d", r.name(), status)
	}
	r.advise(jobs.Ended{Result: result, Code: status})
}

// starts returns the environment of the occurrence to be started, and the text that names the occurrence.
func (t *task) starts() (env []string, what string) {
	if what = " for " + t.due.Occurrence; t.due.Try > 1 {
		what += fmt.Sprintf(" (try %d)", t.due.Try)
	}
	return t.due.Env, what
}
