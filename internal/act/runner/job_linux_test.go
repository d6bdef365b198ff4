package runner_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client/clienttest"
	"github.com/doyen-election/doyen/internal/jobs"
)

const pay = "payments"

// once is the configuration of `doyen once payments`.
func once(change ...func(*config)) config {
	c := config{Status: true, Grace: time.Second, Job: &jobs.Config{Name: pay, Kind: jobs.Key}}
	for _, f := range change {
		f(&c)
	}
	return c
}

// yearly is due once when the job begins, and then not for a year. A test that runs at New Year may see it
// twice.
const yearly = "0 0 1 1 *"

// newYear is the occurrence of yearly that is due.
func newYear() string {
	return time.Date(time.Now().UTC().Year(), 1, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
}

func cron(change ...func(*config)) config {
	c := config{Grace: time.Second, Job: &jobs.Config{Name: pay, Kind: jobs.Cron, Spec: yearly, Late: 400 * 24 * time.Hour}}
	for _, f := range change {
		f(&c)
	}
	return c
}

// startDue starts a cron job for which newYear is due.
func startDue(t *testing.T, c config, script string) *rig {
	t.Helper()
	a := clienttest.Start(t)
	before := time.Date(time.Now().UTC().Year()-1, 12, 31, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
	a.SetWord(pay, 0, jobs.Word{Version: 1, Kind: jobs.Cron, Spec: yearly, Done: before}.Text())
	return startWith(t, a, c, script, nil)
}

// written waits for a write, and returns the new word.
func (r *rig) written() (api.WordRequest, jobs.Word) {
	r.t.Helper()
	q := wait(r.t, "write", r.agent.Writes())
	w, err := jobs.Parse(q.Text)
	if err != nil {
		r.t.Fatal(err)
	}
	return q, w
}

// claim waits for the write of a claim.
func (r *rig) claim() jobs.Word {
	r.t.Helper()
	_, w := r.written()
	if w.Run == nil {
		r.t.Fatalf("no claim: %+v", w)
	}
	return w
}

// end waits for a write that marks an end with this result.
func (r *rig) end(result jobs.Result, code int) jobs.Word {
	r.t.Helper()
	_, w := r.written()
	if w.Last == nil || w.Last.Result != result || w.Last.Code != code {
		r.t.Fatalf("written %s, want the end %s with code %d", w.Text(), result, code)
	}
	return w
}

// over waits as end does, and then for this exit status and the receipt.
func (r *rig) over(stood *clienttest.Campaign, result jobs.Result, code int) jobs.Word {
	r.t.Helper()
	w := r.end(result, code)
	r.status(code)
	wait(r.t, "receipt", stood.Receipts())
	return w
}

// kept returns the agent's present word.
func (r *rig) kept() jobs.Word {
	r.t.Helper()
	word := r.agent.Word(pay)
	if word == nil {
		return jobs.Word{}
	}
	w, err := jobs.Parse(word.Text)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// idle demands that the command has not said anything, and that no receipt was given.
func (r *rig) idle(stood *clienttest.Campaign) {
	r.t.Helper()
	select {
	case said := <-r.said:
		r.t.Fatalf("the command runs: %s", said)
	default:
	}
	if n := len(stood.Receipts()); n > 0 {
		r.t.Fatalf("%d receipts", n)
	}
}

func TestJ2TheCommandStartsOnceItsClaimIsAcknowledged(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	release := a.HoldWrites()
	r := startWith(t, a, once(), `echo $DOYEN_TERM $DOYEN_KEY $DOYEN_OCCURRENCE $DOYEN_TRY >&9`, nil)
	stood := a.Stood()
	stood.Elect(3, long)
	if w := r.claim(); w.Run.At != pay || w.Run.Term != 3 || w.Run.Try != 1 || w.Done != "" {
		t.Errorf("claimed by %s", w.Text())
	}
	stood.Renew(3, 2*long)
	r.idle(stood)
	release()
	r.line("starting sh for payments")
	r.word("3 payments payments 1")
	if w := r.over(stood, jobs.Finished, 0); w.Done != pay || w.Run != nil {
		t.Errorf("its end is %s", w.Text())
	}
}

// If the claim is not acknowledged before the leadership ends, it is removed. Otherwise the next leader would
// not know whether the command ran.
func TestJ2AClaimThatIsAcknowledgedTooLateIsTakenBackBeforeTheReceipt(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	release := a.HoldWrites()
	r := startWith(t, a, once(), `echo up >&9`, nil)
	stood := a.Stood()
	stood.Elect(3, long)
	r.claim()
	stood.Revoke("transferred", long)
	r.line("no longer leading payments (transferred): nothing was running")
	r.idle(stood)
	release()
	if _, w := r.written(); w.Run != nil || w.Done != "" || w.Last != nil {
		t.Errorf("then written %s", w.Text())
	}
	wait(t, "receipt", stood.Receipts())
	if w := r.kept(); w.Run != nil {
		t.Errorf("the receipt came before the claim was taken back: %s", w.Text())
	}
	stood.Elect(4, long) // the candidacy goes on, and the key has not run yet
	r.claim()
	r.word("up")
	r.status(0)
}

func TestTheEndIsWrittenBeforeTheReceipt(t *testing.T) {
	t.Parallel()
	r := startDue(t, cron(), `echo up $DOYEN_OCCURRENCE >&9; exec sleep 1000`)
	stood := r.agent.Stood()
	stood.Elect(3, long)
	r.claim()
	r.word("up " + newYear())
	release := r.agent.HoldWrites()
	stood.Revoke("drained", long)
	wait(t, "death", r.death)
	if w := r.end(jobs.Stopped, 128+int(syscall.SIGTERM)); w.Run != nil || w.Done != newYear() {
		t.Errorf("its end is %s", w.Text())
	}
	r.idle(stood)
	release()
	wait(t, "receipt", stood.Receipts())
	if w := r.kept(); w.Last == nil || w.Last.Result != jobs.Stopped {
		t.Errorf("at the receipt the word was %s", w.Text())
	}
}

// A successor never waits longer than the lease.
func TestTheReceiptWaitsForAWriteOnlyUntilTheLeaseEnds(t *testing.T) {
	t.Parallel()
	r := startDue(t, cron(), `echo up >&9; exec sleep 1000`)
	stood := r.agent.Stood()
	until := stood.Elect(3, short)
	r.claim()
	r.word("up")
	defer r.agent.HoldWrites()()
	stood.Revoke("drained", long) // but the lease ends earlier
	wait(t, "death", r.death)
	r.end(jobs.Stopped, 128+int(syscall.SIGTERM))
	r.idle(stood)
	wait(t, "end of the lease", after(t, until))
	wait(t, "receipt", stood.Receipts())
	r.agent.Stood() // the receipt came too late, so the candidacy has ended
}

// If the end of the lease kills the command, no end is written. The next leader finds the claim, whose end is
// unknown.
func TestJ4TheLeasesEndMarksNothing(t *testing.T) {
	t.Parallel()
	r := startDue(t, cron(), stubborn)
	stood := r.agent.Stood()
	until := stood.Elect(3, short)
	r.claim()
	r.word("up")
	release := r.agent.HoldWrites() // the agent is frozen
	r.before(until)
	again := r.agent.Stood()
	release()
	if w := r.kept(); w.Run == nil || w.Last != nil {
		t.Fatalf("the word is %s", w.Text())
	}
	for len(r.agent.Writes()) > 0 {
		if q := <-r.agent.Writes(); q.Term != 3 {
			t.Errorf("written under term %d", q.Term)
		}
	}
	again.Elect(4, long)
	if q, w := r.written(); q.Term != 4 || w.Run != nil || w.Last.Result != jobs.Unknown || w.Done != newYear() {
		t.Errorf("then written %+v", q)
	}
	r.line("nobody knows how " + newYear() + " ended")
	r.line(newYear() + " is not started again")
}

// The agent refuses the claim because the term has risen.
func TestAWriteIsRepeatedUnderATermThatHasRisen(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	release := a.HoldWrites()
	r := startWith(t, a, once(), `echo $DOYEN_TERM >&9`, nil)
	stood := a.Stood()
	stood.Elect(3, long)
	first, _ := r.written()
	stood.Renew(8, long)
	r.line("now under term 8")
	r.idle(stood)
	release()
	for range 64 { // requests sent before the program knew term 8
		if q, _ := r.written(); q.Term == 8 {
			if q.Text != first.Text || q.If != first.If {
				t.Errorf("repeated as %+v, first %+v", q, first)
			}
			break
		}
	}
	r.word("8")
	r.end(jobs.Finished, 0)
	r.status(0)
}

// The claim was written under the former term, but the agent could not confirm that before the term rose.
func TestAClaimOfTheFormerTermThatCountedIsStarted(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	release := a.HoldWrites()
	r := startWith(t, a, once(), `echo $DOYEN_TERM >&9`, nil)
	stood := a.Stood()
	stood.Elect(3, long)
	first, _ := r.written()
	stood.Renew(8, long)
	r.line("now under term 8")
	a.SetWord(pay, 3, first.Text)
	a.RefuseWrites(409, api.CodeNotConfirmed, "nobody knows")
	release()
	r.written() // again
	a.RefuseWrites(0, "", "")
	r.word("8")
	r.status(0)
}

func TestAClaimWhoseAnswerIsLostIsStartedOnce(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(*rig, *clienttest.Campaign){
		"the connection": func(*rig, *clienttest.Campaign) {},
		"the agent": func(r *rig, _ *clienttest.Campaign) {
			r.agent.Stop()
			r.agent.Listen()
			r.agent.Resumed().Renew(3, long)
			r.line("still leading payments, term 3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clienttest.Start(t)
			a.LoseAnswers(1)
			r := startWith(t, a, once(), `trap 'exit 0' USR1; echo up >&9; while :; do sleep 0.1; done`, nil)
			stood := a.Stood()
			stood.Elect(3, long)
			r.claim()
			die(r, stood)
			if w := r.claim(); w.Run.Try != 1 {
				t.Errorf("claimed again as %s", w.Text())
			}
			r.word("up")
			r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
			if w := r.end(jobs.Finished, 0); w.Last.Try != 1 {
				t.Errorf("ended as %s", w.Text())
			}
			r.status(0)
			if len(r.said) > 0 {
				t.Error("it started twice")
			}
		})
	}
}

func TestACommandRunsOnAndIsMarkedThoughItsAgentDied(t *testing.T) {
	t.Parallel()
	r := start(t, once(), `trap 'exit 0' USR1; echo up >&9; while :; do sleep 0.1; done`)
	r.agent.Stood().Elect(3, long)
	r.claim()
	r.word("up")
	r.agent.Stop()
	r.agent.Listen()
	again := r.agent.Resumed()
	again.Renew(3, long)
	r.line("still leading payments, term 3")
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
	r.over(again, jobs.Finished, 0)
}

// The command ends while the agent is away.
func TestTheEndIsWrittenToTheAgentsNextLife(t *testing.T) {
	t.Parallel()
	r := start(t, once(), `trap 'exit 3' USR1; echo up >&9; while :; do sleep 0.1; done`)
	r.agent.Stood().Elect(3, long)
	r.claim()
	r.word("up")
	r.agent.RefuseWrites(http.StatusServiceUnavailable, api.CodeUnavailable, "it begins") // so that the end is not written before the program resumes
	r.agent.Stop()
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
	r.line("sh ended with status 3")
	r.agent.Listen()
	again := r.agent.Resumed()
	r.agent.RefuseWrites(0, "", "")
	again.Renew(3, long)
	if w := r.over(again, jobs.Failed, 3); w.Run != nil || w.Done != "" {
		t.Errorf("written %s", w.Text())
	}
}

// `doyen jobs NAME --reset-done` writes the word without the program.
func TestAWordThatAnotherProcessWroteIsReadAgain(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	ahead := time.Now().Add(10 * 365 * 24 * time.Hour).UTC().Format(time.RFC3339)
	a.SetWord(pay, 1, jobs.Word{Version: 1, Kind: jobs.Cron, Spec: yearly, Done: ahead}.Text())
	r := startWith(t, a, cron(func(c *config) { c.Look = 5 * time.Millisecond }), `echo $DOYEN_OCCURRENCE >&9; exec sleep 1000`, nil)
	stood := a.Stood()
	stood.Elect(3, long)
	r.line("nothing runs until this host's clock reaches " + ahead)
	r.idle(stood)

	at, err := time.Parse(time.RFC3339, newYear())
	if err != nil {
		t.Fatal(err)
	}
	text, err := jobs.ResetDone(a.Word(pay).Text, at.Add(-time.Hour), 0)
	if err != nil {
		t.Fatal(err)
	}
	a.SetWord(pay, 3, text)
	r.claim()
	r.word(newYear())
}
