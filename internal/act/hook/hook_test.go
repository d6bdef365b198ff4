package hook_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/testbed/executable"
)

const patience = 30 * time.Second

type log struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string
	seen chan struct{}
}

// await returns a channel that closes once the log contains the text.
func (l *log) await(text string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.want, l.seen = text, make(chan struct{})
	return l.seen
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.buf.Write(p)
	if l.want != "" && strings.Contains(l.buf.String(), l.want) {
		l.want = ""
		close(l.seen)
	}
	return n, err
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func pool() *guard.Pool {
	return guard.NewPool(os.Environ(), guard.Nice(), "", slog.New(slog.DiscardHandler))
}

func start(t *testing.T, command string, limit time.Duration) (*hook.Runner, *log) {
	t.Helper()
	if !filepath.IsAbs(command) {
		command = executable.Script(t, command)
	}
	l := &log{}
	r := hook.New(hook.Commands{Default: command, Others: command, Limit: limit}, pool(), slog.New(slog.NewTextHandler(l, nil)))
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

func TestRunsAreToldWhatHappenedByTheirEnvironment(t *testing.T) {
	dir := t.TempDir()
	r, _ := start(t, `echo "$DOYEN_ELECTION $DOYEN_EVENT $DOYEN_LEADER $DOYEN_TERM" >> `+dir+`/$DOYEN_ELECTION`, patience)
	await(t, "a run", tell(r, hook.Event{Election: "default", Event: election.Leading, Leader: "a", Term: 5}))
	other := tell(r, hook.Event{Election: "payments", Event: election.Following, Leader: "b", Term: 2})
	await(t, "a run", tell(r, hook.Event{Election: "default", Event: election.Following, Leader: "c", Term: 6}))
	await(t, "a run of another election", other)
	for name, want := range map[string]string{"default": "default leading a 5\ndefault following c 6\n", "payments": "payments following b 2\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

// Any user that may be a candidate can create elections. Named elections don't wait for the runs of such ones.
func TestJunkElectionsDoNotKeepAnotherWaiting(t *testing.T) {
	never := filepath.Join(t.TempDir(), "never")
	mkfifo(t, never)
	r, _ := start(t, `[ $DOYEN_ELECTION = default ] || exec cat `+never, time.Hour)
	for i := range 250 {
		r.Enqueue(hook.Event{Election: election.Name(fmt.Sprint("junk", i)), Event: election.Following, Term: 1})
	}
	await(t, "the end of its own leadership", tell(r, hook.Event{Election: "default", Event: election.NoLeader, Term: 1, StopIn: time.Hour}))
	await(t, "the beginning of the next", tell(r, hook.Event{Election: "default", Event: election.Leading, Term: 2}))
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
	// The first run writes to a pipe that it has begun, and then waits for ever.
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

// gated starts a runner. Every run writes its event and term to a file. The first run then reports that it has
// begun, and waits until open is called.
func gated(t *testing.T) (r *hook.Runner, l *log, open func(), trail func() string) {
	t.Helper()
	dir := t.TempDir()
	gate, began, out := filepath.Join(dir, "gate"), filepath.Join(dir, "began"), filepath.Join(dir, "out")
	mkfifo(t, gate)
	mkfifo(t, began)
	r, l = start(t, `echo "$DOYEN_EVENT $DOYEN_TERM" >> `+out+`; [ $DOYEN_TERM != 1 ] || { echo x > `+began+`; cat `+gate+`; }`, patience)
	r.Enqueue(hook.Event{Election: "default", Event: election.Following, Term: 1})
	if _, err := os.ReadFile(began); err != nil {
		t.Fatal(err)
	}
	open = func() {
		if err := os.WriteFile(gate, []byte("go"), 0); err != nil {
			t.Error(err)
		}
	}
	trail = func() string {
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", ")
	}
	return r, l, open, trail
}

// If a leadership ends before its run starts, that run must not start: a successor may lead by then.
func TestALeadershipThatIsOverIsNotToldAnyMore(t *testing.T) {
	r, l, open, trail := gated(t)
	stale := tell(r, hook.Event{Election: "default", Event: election.Leading, Term: 17})
	last := tell(r, hook.Event{Election: "default", Event: election.NoLeader, Term: 17})
	select {
	case <-stale:
		t.Error("the receipt came before the end was told")
	default:
	}
	open()
	await(t, "the one left out", stale)
	await(t, "the run that tells the end", last)
	if got, want := trail(), "following 1, none 17"; got != want {
		t.Errorf("runs: %s; want %s", got, want)
	}
	if !strings.Contains(l.String(), "hook skipped") {
		t.Errorf("not logged:\n%s", l)
	}
}

func TestOnlyTheNewestTermOfALeadershipIsTold(t *testing.T) {
	r, _, open, trail := gated(t)
	r.Enqueue(hook.Event{Election: "default", Event: election.Leading, Term: 17})
	last := tell(r, hook.Event{Election: "default", Event: election.Leading, Term: 18})
	open()
	await(t, "the last run", last)
	if got, want := trail(), "following 1, leading 18"; got != want {
		t.Errorf("runs: %s; want %s", got, want)
	}
}

// A command may stop something on `none` alone, so that run must not be skipped. Of the events that report a
// leader, only the newest one runs.
func TestTheEndOfALeadershipIsToldWhateverComesAfterIt(t *testing.T) {
	r, _, open, trail := gated(t)
	for _, e := range []hook.Event{
		{Event: election.Following, Term: 5}, {Event: election.Leading, Term: 6}, {Event: election.NoLeader, Term: 6},
		{Event: election.Following, Term: 7}, {Event: election.Following, Term: 8},
	} {
		e.Election = "default"
		r.Enqueue(e)
	}
	last := tell(r, hook.Event{Election: "default", Event: election.Following, Term: 9})
	open()
	await(t, "the last run", last)
	if got, want := trail(), "following 1, none 6, following 9"; got != want {
		t.Errorf("runs: %s; want %s", got, want)
	}
}

func TestAStopLetsTheHookFinishAndSaysSoIfItDoesNot(t *testing.T) {
	r, l, open, trail := gated(t)
	r.Enqueue(hook.Event{Election: "default", Event: election.NoLeader, Term: 6})
	closed := make(chan struct{})
	waiting := l.await("waiting for the hook to finish")
	go func() {
		defer close(closed)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r.Close(ctx)
	}()
	await(t, "the word of the wait", waiting)
	open()
	await(t, "the end", closed)
	if got, want := trail(), "following 1, none 6"; got != want {
		t.Errorf("runs: %s; want %s", got, want)
	}

	r, l, _, _ = gated(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.Close(ctx)
	if !strings.Contains(l.String(), "hook killed: the agent stops") {
		t.Errorf("the log does not say why it was killed:\n%s", l)
	}
}

func TestWhatDoesNotStandWhenItsTurnComesIsLeftOut(t *testing.T) {
	r, _, open, trail := gated(t)
	var leads atomic.Bool
	leads.Store(true)
	done := make(chan struct{})
	r.Enqueue(hook.Event{
		Election: "default", Event: election.Leading, Term: 17,
		Stands: leads.Load, Done: func() { close(done) },
	})
	leads.Store(false)
	open()
	await(t, "the receipt", done)
	if got, want := trail(), "following 1"; got != want {
		t.Errorf("runs: %s; want %s", got, want)
	}
}

func TestAnEndThatIsToldTooLateIsLogged(t *testing.T) {
	r, l, open, _ := gated(t)
	logged := l.await("another agent may lead by now")
	late := make(chan struct{})
	r.Enqueue(hook.Event{
		Election: "default", Event: election.NoLeader, Term: 17,
		StopIn: time.Millisecond, Done: func() { close(late) },
	})
	await(t, "the word of it", logged)
	timely := tell(r, hook.Event{Election: "default", Event: election.NoLeader, Term: 18, StopIn: time.Hour})
	open()
	await(t, "the late one", late)
	await(t, "the timely one", timely)
	if n := strings.Count(l.String(), "another agent may lead by now"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, l)
	}
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
	if strings.Join(terms, " ") != "1 200" {
		t.Errorf("runs for terms %v; want 1 and 200", terms)
	}
}

func TestFailuresAndFloodsAreLoggedBounded(t *testing.T) {
	r, l := start(t, `i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; exit 3`, patience)
	await(t, "the run", tell(r, hook.Event{Election: "default", Event: election.Following}))
	text := l.String()
	if !strings.Contains(text, "exit status 3") || !strings.Contains(text, "lines=500") {
		t.Errorf("log lacks the failure or the count: %q", text)
	}
	if n := strings.Count(text, "hook output"); n > 50 {
		t.Errorf("%d lines logged", n)
	}
}

// The command keeps its quotes, and inherits no file of the agent.
func TestTheCommandIsGivenToTheShellAsItIs(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	r, l := start(t, `printf '%s|' "a  b" 'c"d' > `+out+`; (echo x >&3) 2>/dev/null || echo closed >> `+out, patience)
	await(t, "the run", tell(r, hook.Event{Election: "default", Event: election.Following}))
	got, err := os.ReadFile(out)
	if want := "a  b|c\"d|closed\n"; err != nil || string(got) != want {
		t.Errorf("the command wrote %q, %v; want %q\n%s", got, err, want, l)
	}
}

func TestCloseGivesEveryReceipt(t *testing.T) {
	r := hook.New(hook.Commands{Default: executable.Script(t, "cat /dev/zero > /dev/null"), Limit: time.Hour}, pool(), slog.New(slog.DiscardHandler))
	first := tell(r, hook.Event{Election: "default", Event: election.Following})
	second := tell(r, hook.Event{Election: "default", Event: election.Following})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.Close(ctx)
	await(t, "the running one", first)
	await(t, "the waiting one", second)
	await(t, "one that came too late", tell(r, hook.Event{Election: "default", Event: election.NoLeader}))
}

// If standard input did not block, a program would get an error while its input is not there yet.
func TestACommandsInputAndOutputBlock(t *testing.T) {
	const nonblock = 0o4000 // O_NONBLOCK in fdinfo's flags
	at := filepath.Join(t.TempDir(), "flags")
	r, _ := start(t, "cat /proc/$$/fdinfo/0 /proc/$$/fdinfo/1 /proc/$$/fdinfo/2 > "+at, patience)
	await(t, "a run", tell(r, hook.Event{Election: "default", Event: election.Leading, Term: 5}))
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`flags:\s*(\d+)`).FindAllStringSubmatch(string(text), -1)
	if len(found) != 3 {
		t.Fatalf("fdinfo: %s", text)
	}
	for of, f := range found {
		if flags, err := strconv.ParseUint(f[1], 8, 64); err != nil || flags&nonblock != 0 {
			t.Errorf("descriptor %d has flags %s, %v", of, f[1], err)
		}
	}
}

// The command that acted has to undo it, even if the configuration has another command by then.
func TestTheEndOfALeadershipRunsTheCommandThatActed(t *testing.T) {
	r, _, open, trail := gated(t)
	former := r.Command("default")
	r.Enqueue(hook.Event{Election: "default", Event: election.NoLeader, Term: 6, Command: former})
	r.Configure(hook.Commands{Default: "true"})
	last := tell(r, hook.Event{Election: "default", Event: election.NoLeader, Term: 6})
	open()
	await(t, "the last run", last)
	if got, want := trail(), "following 1, none 6"; got != want {
		t.Errorf("runs: %s; want %s", got, want)
	}
}

// The run that undoes a leadership is repeated if its guard is killed. Done is called only after the
// repetition.
func TestTheEndOfALeadershipIsRunAgainIfItsGuardIsKilled(t *testing.T) {
	at := filepath.Join(t.TempDir(), "trail")
	r, _ := start(t, "if test -e "+at+"; then echo undone >> "+at+"; else echo begun > "+at+"; kill -9 $PPID; sleep 1000; fi", patience)
	await(t, "the end", tell(r, hook.Event{Election: "default", Event: election.NoLeader, Term: 6, StopIn: patience}))
	if text, err := os.ReadFile(at); string(text) != "begun\nundone\n" {
		t.Errorf("%q, %v", text, err)
	}
}
