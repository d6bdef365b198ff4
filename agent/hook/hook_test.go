package hook_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/hook"
	"github.com/doyen-election/doyen/election"
)

const patience = 10 * time.Second

type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func start(t *testing.T, command string, limit time.Duration) (*hook.Runner, *log) {
	t.Helper()
	l := &log{}
	r := hook.Start(command, limit, slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r.Close(ctx)
	})
	return r, l
}

// tell enqueues an event and returns a channel that closes once it is done.
func tell(r *hook.Runner, e hook.Event) <-chan struct{} {
	done := make(chan struct{})
	e.Done = func() { close(done) }
	r.Enqueue(e)
	return done
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("timed out waiting for %s", what)
	}
}

func TestEventsRunInOrderWithTheirEnvironment(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	r, _ := start(t, `echo "$DOYEN_ELECTION $DOYEN_EVENT $DOYEN_LEADER $DOYEN_TERM" >> `+out, patience)
	r.Enqueue(hook.Event{Election: "default", Event: election.Leading, Leader: "a", Term: 5})
	r.Enqueue(hook.Event{Election: "payments", Event: election.Following, Leader: "b", Term: 2})
	await(t, "the last run", tell(r, hook.Event{Election: "default", Event: election.Following, Leader: "c", Term: 6}))
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	if len(lines) == 3 {
		// The first may have been killed, since the third outdates it.
		if lines[0] != "default leading a 5" {
			t.Errorf("first run: %q", lines[0])
		}
		lines = lines[1:]
	}
	if want := "payments following b 2|default following c 6"; strings.Join(lines, "|") != want {
		t.Errorf("got %q, want %q at the end", lines, want)
	}
}

func TestARunIsLimitedWithItsWholeProcessGroup(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "never")
	r, l := start(t, "mkfifo "+fifo+"; (cat "+fifo+") & cat "+fifo, 100*time.Millisecond)
	await(t, "the killed run", tell(r, hook.Event{Election: "default", Event: election.Following}))
	if !strings.Contains(l.String(), "it took too long") {
		t.Errorf("log %q does not say why", l)
	}
}

func TestTheEndOfALeadershipKillsItsOwnRun(t *testing.T) {
	dir := t.TempDir()
	began := filepath.Join(dir, "began")
	// The first run tells that it began through a pipe, and then waits for ever.
	r, _ := start(t, `[ $DOYEN_EVENT = none ] || { echo x > `+began+`; cat `+dir+`/never; }`, time.Hour)
	for _, p := range []string{began, filepath.Join(dir, "never")} {
		mkfifo(t, p)
	}
	first := tell(r, hook.Event{Election: "default", Event: election.Leading, Term: 1})
	if _, err := os.ReadFile(began); err != nil {
		t.Fatal(err)
	}
	last := tell(r, hook.Event{Election: "default", Event: election.NoLeader, Term: 1})
	await(t, "the killed run", first)
	await(t, "the run after it", last)
}

func TestABacklogKeepsTheNewestAndLosesNoReceipt(t *testing.T) {
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	began := filepath.Join(dir, "began")
	mkfifo(t, gate)
	mkfifo(t, began)
	out := filepath.Join(dir, "out")
	r, _ := start(t, `[ $DOYEN_TERM != 1 ] || { echo x > `+began+`; cat `+gate+`; }; echo $DOYEN_TERM >> `+out, patience)
	all := []<-chan struct{}{tell(r, hook.Event{Election: "default", Event: election.Following, Term: 1})}
	if _, err := os.ReadFile(began); err != nil {
		t.Fatal(err)
	}
	for term := range election.Term(199) {
		all = append(all, tell(r, hook.Event{Election: "default", Event: election.Following, Term: term + 2}))
	}
	if err := os.WriteFile(gate, []byte("go"), 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		await(t, "a receipt", c)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	terms := strings.Fields(string(got))
	if len(terms) > 40 || terms[len(terms)-1] != "200" {
		t.Errorf("%d runs, the last for term %s; want about 33 and 200", len(terms), terms[len(terms)-1])
	}
}

func TestFailuresAndFloodsAreLoggedBounded(t *testing.T) {
	r, l := start(t, `i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; exit 3`, patience)
	await(t, "the run", tell(r, hook.Event{Election: "default", Event: election.Following}))
	text := l.String()
	if !strings.Contains(text, "exit status 3") || !strings.Contains(text, "lines=500") {
		t.Errorf("log lacks the failure or the count: %q", text)
	}
	if n := strings.Count(text, "hook says"); n > 50 {
		t.Errorf("%d lines logged", n)
	}
}

func TestCloseGivesEveryReceipt(t *testing.T) {
	r := hook.Start("cat /dev/zero > /dev/null", time.Hour, slog.New(slog.DiscardHandler))
	first := tell(r, hook.Event{Election: "default", Event: election.Following})
	second := tell(r, hook.Event{Election: "default", Event: election.Following})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.Close(ctx)
	await(t, "the running one", first)
	await(t, "the waiting one", second)
	await(t, "one that came too late", tell(r, hook.Event{Election: "default", Event: election.NoLeader}))
}
