package runner

import (
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/client/clienttest"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/jobs"
)

// leads returns a runner with a job, which leads until that instant. The answers to its writes reach it only
// through wrote.
func leads(t *testing.T, c jobs.Config, until int64) (*clienttest.Agent, *runner) {
	t.Helper()
	j, err := jobs.New(c)
	if err != nil {
		t.Fatal(err)
	}
	fake := clienttest.Start(t)
	agent := client.New(fake.Socket())
	s, err := agent.Stand(t.Context(), c.Name, api.CampaignRequest{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return fake, &runner{Config: Config{Election: "payments", Command: []string{"pay"}, lines: make(chan string, 16), Client: agent},
		ctx: t.Context(), calls: make(chan func()), candidacy: s, leading: true, owed: true, ready: true, term: 3,
		until: until, lease: time.Hour, began: never, progress: progress{dueAt: never}, task: &task{Job: j, lookAt: never}}
}

var key = jobs.Config{Name: "payments", Kind: jobs.Key}

func TestJ7AJumpIsAMinuteBetweenTwoLooks(t *testing.T) {
	const at = int64(1_700_000_000_000_000_000)
	for by, want := range map[time.Duration]bool{0: false, time.Second: false, time.Minute - 1: false, time.Minute: true, time.Hour: true} {
		if jumped(at, at+int64(by)) != want || jumped(at, at-int64(by)) != want {
			t.Errorf("by %v: want %t, both ways", by, want)
		}
	}
}

// The agent may be away until the lease ends. Waiting for a write must not keep the loop awake.
func TestTheLoopSleepsWhileAJobCanDoNothing(t *testing.T) {
	now := alarm.Now()
	until := now + int64(time.Hour)
	for name, set := range map[string]func(*runner){
		"the agent is away":             func(r *runner) { r.resuming, r.task.again, r.task.againAt = true, &api.WordRequest{}, now-1 },
		"the end is being written":      func(r *runner) { r.leading, r.task.asked, r.task.lookAt = false, true, now-1 },
		"it ends, and a look is due":    func(r *runner) { r.ending, r.task.asked, r.task.lookAt = true, true, now-1 },
		"it ends, and an alarm was due": func(r *runner) { r.ending, r.task.asked, r.task.wake = true, true, time.Now().Add(-time.Hour) },
	} {
		_, r := leads(t, key, until)
		set(r)
		r.tick(now)
		if at := r.wakeAt(now); at <= now {
			t.Errorf("%s: it wakes %v before now", name, time.Duration(now-at))
		}
	}
	_, r := leads(t, key, until)
	r.task.again, r.task.againAt = &api.WordRequest{}, now+5
	if at := r.wakeAt(now); at != now+5 {
		t.Errorf("a write is due in 5 ns, and it wakes in %v", time.Duration(at-now))
	}
}

// After the deadline the next leader may have written the word.
func TestNothingIsWrittenAfterTheLease(t *testing.T) {
	now := alarm.Now()
	for at, want := range map[int64]bool{now: false, now + 1: true} {
		_, r := leads(t, key, at)
		r.task.again = &api.WordRequest{Text: "x"}
		if r.tick(now); r.task.asked != want {
			t.Errorf("%d ns before the deadline: written: %t", at-now, r.task.asked)
		}
	}
}

// An earlier try may have succeeded. A different text would then replace what it has written.
func TestAWriteIsRepeatedAsItWas(t *testing.T) {
	_, r := leads(t, key, never)
	r.begin(nil, true)
	first := r.task.Step(time.Now(), jobs.Tick{}) // the job writes nothing else during a write
	q := api.WordRequest{Term: 3, If: api.WordID{Term: 1, Seq: 1}, Text: "x"}
	r.term = 8
	r.wrote(q, api.WordID{}, &client.APIError{Code: api.CodeNotConfirmed})
	if first.Write != "" || r.task.again == nil || r.task.again.Text != "x" || r.task.again.If != q.If {
		t.Fatalf("to be repeated: %+v", r.task.again)
	}
	again := r.task.again
	if r.tick(r.task.againAt); again.Term != 8 || !r.task.asked {
		t.Errorf("repeated as %+v: %t", again, r.task.asked)
	}
}

func TestATimeoutIsOfOneRun(t *testing.T) {
	a, b := guard.Report{Kind: guard.Gone, Why: guard.ByOrder, Status: 143}, guard.Report{Kind: guard.Gone, Why: guard.ByItself, Status: 7}
	for _, test := range []struct {
		timedOut bool
		got      guard.Report
		want     int
	}{{true, a, StatusTimeout}, {true, b, 7}, {false, a, 143}} {
		r := &runner{Config: ofTest(), leading: true, timedOut: test.timedOut, until: never, lease: time.Hour}
		r.Restart, r.Status = RestartNever, true
		if r.gone(test.got); r.status != test.want || !r.ending {
			t.Errorf("%+v: status %d", test, r.status)
		}
	}
}

// The program reads the elected line too late, and leads by the line after it.
func TestAWordInALineThatWasReadLateIsOfThatLeadershipAlone(t *testing.T) {
	now := alarm.Now()
	_, r := leads(t, key, never)
	r.leading, r.owed = false, false
	old := &api.Word{WordID: api.WordID{Term: 2, Seq: 1}, Text: jobs.Word{Version: 1, Kind: jobs.Key, Done: "payments"}.Text()}
	r.lead(api.CampaignEvent{Type: api.CampaignElected, Term: 3, ValidUntilBoottimeNS: now - 1, Word: old}, now)
	if r.lead(api.CampaignEvent{Type: api.CampaignRenewed, Term: 3, ValidUntilBoottimeNS: never}, now); !r.ending || r.task.word != *old {
		t.Errorf("it has the word %+v", r.task.word)
	}

	_, r = leads(t, key, never)
	r.leading, r.owed = false, false
	r.lead(api.CampaignEvent{Type: api.CampaignElected, Term: 3, ValidUntilBoottimeNS: now - 1, Word: old}, now)
	// It was revoked, another host deleted the word, and this one is elected again.
	if r.lead(api.CampaignEvent{Type: api.CampaignElected, Term: 5, ValidUntilBoottimeNS: never}, now); r.ending || r.task.word != (api.Word{}) {
		t.Errorf("it has the word %+v, and ends: %t", r.task.word, r.ending)
	}
}

// The signal comes during the write of the claim: nothing starts, and the claim is removed.
func TestJ2ASignalTakesBackAClaimThatIsNotAcknowledged(t *testing.T) {
	agent, r := leads(t, key, never)
	r.begin(nil, true)
	r.Status = true
	claim, now := sent(t, agent), alarm.Now()
	r.end(syscall.SIGTERM)
	if r.follow(now) || !r.owed {
		t.Fatal("it did not wait for the answer")
	}
	r.wrote(claim, api.WordID{Term: 3, Seq: 1}, nil)
	if r.follow(now) || !r.owed || r.state != idle {
		t.Fatal("it did not take the claim back")
	}
	back := sent(t, agent)
	if w, err := jobs.Parse(back.Text); err != nil || w.Run != nil || back.If != (api.WordID{Term: 3, Seq: 1}) {
		t.Errorf("taken back by %+v", back)
	}
	r.wrote(back, api.WordID{Term: 3, Seq: 2}, nil)
	if !r.follow(now) || r.owed || r.status != 128+int(syscall.SIGTERM) {
		t.Errorf("it did not end: owed %t, status %d", r.owed, r.status)
	}
}

func sent(t *testing.T, agent *clienttest.Agent) api.WordRequest {
	t.Helper()
	select {
	case q := <-agent.Writes():
		return q
	case <-time.After(clienttest.Patience):
		t.Fatal("it wrote nothing")
		return api.WordRequest{}
	}
}
