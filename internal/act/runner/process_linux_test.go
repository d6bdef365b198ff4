package runner_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client/clienttest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/act/runner"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/testbed/hiccup"
)

// meter records when this machine gave no process any processor time.
var meter *hiccup.Meter

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Word {
		os.Exit(guard.Main())
	}
	if len(os.Args) > 1 && os.Args[1] == asNotifier {
		os.Exit(notify(os.Args[2:]))
	}
	if text := os.Getenv(asRunner); text != "" {
		os.Exit(run(text))
	}
	// The thread that measures deaths needs a processor in time. Root may raise its priority.
	threads, _ := filepath.Glob("/proc/self/task/*")
	for _, path := range threads {
		if thread, err := strconv.Atoi(filepath.Base(path)); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, thread, -20)
		}
	}
	// The tests mostly wait for leases to expire. But more tests at once would start so many processes that none
	// begins before its lease has ended.
	if err := flag.Set("test.parallel", strconv.Itoa(6*runtime.NumCPU())); err != nil {
		panic(err)
	}
	meter, _ = hiccup.Start("")
	os.Exit(m.Run())
}

// rig is a runner under test, with what the test sees of it.
type rig struct {
	t     *testing.T
	agent *clienttest.Agent
	cmd   *exec.Cmd
	lines chan string // the runner's lines
	heard transcript  // the same lines, shown if the test fails
	ended chan int    // the runner's exit status
	// said has the lines that the command writes to descriptor 9. A run's lines end when no process has the
	// descriptor any more.
	said  chan string
	death chan int64 // when the lines of a run ended
}

// transcript has the runner's lines in order.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (t *transcript) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.lines); n == 0 || t.lines[n-1] != line {
		t.lines = append(t.lines, line)
	}
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// start runs the script under a runner. In the script, descriptor 9 is the rig's. A script that waits for a signal
// sleeps for a tenth of a second at a time: each sleep is a process, and costs some 5 ms of a processor.
func start(t *testing.T, c config, script string) *rig {
	t.Helper()
	return startAt(t, c, script, nil)
}

// startAt does what start does, at the terminal if there is one.
func startAt(t *testing.T, c config, script string, terminal *os.File) *rig {
	t.Helper()
	return startWith(t, clienttest.Start(t), c, script, terminal)
}

// startWith does what startAt does, with an agent that the test has prepared.
func startWith(t *testing.T, agent *clienttest.Agent, c config, script string, terminal *os.File) *rig {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			load, _ := os.ReadFile("/proc/loadavg")
			t.Logf("load %s", load)
		}
	})
	r := &rig{t: t, agent: agent, lines: make(chan string, 100), ended: make(chan int, 1), said: make(chan string, 100), death: make(chan int64, 1)}
	dir, err := os.MkdirTemp("", "doyen") // not t.TempDir: the goroutine below may still renew a pipe when the test ends
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Socket = r.agent.Socket()
	if c.Command == nil {
		c.Command = []string{"/bin/sh", "-c", "exec 9>" + fifo + "\nnotify() { " + self + " " + asNotifier + " \"$@\"; }\n" + script}
	}
	if c.Restart == "" {
		c.Restart = runner.RestartAlways
	}
	if c.Grace == 0 {
		c.Grace = 10 * time.Second
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(self)
	r.cmd.Env = append(os.Environ(), asRunner+"="+string(text), "GORACE=atexit_sleep_ms=0")
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if terminal != nil {
		r.cmd.Stdin, r.cmd.SysProcAttr.Setctty = terminal, true
	}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.kill)
	go r.read(stderr)
	go r.listen(fifo)
	return r
}

func (r *rig) read(stderr io.Reader) {
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		r.heard.add(lines.Text())
		r.lines <- lines.Text()
	}
	close(r.lines)
	err := r.cmd.Wait()
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	}
	r.ended <- status
}

// listen reads the lines of one run after the other.
func (r *rig) listen(fifo string) {
	for file := range pipes(fifo) {
		for lines := bufio.NewScanner(file); lines.Scan(); {
			r.said <- lines.Text()
		}
		file.Close()
		r.death <- alarm.Now()
	}
}

// pipes returns a pipe for each run of the command. On one pipe, a second run might begin before the end of the
// first was seen.
func pipes(fifo string) <-chan *os.File {
	opened := make(chan *os.File, 8)
	go func() {
		defer close(opened)
		for {
			file, err := os.Open(fifo) // waits for a writer
			if err != nil {
				return
			}
			if err := renew(fifo); err != nil {
				file.Close()
				return // the test has ended
			}
			opened <- file
		}
	}()
	return opened
}

// renew replaces a pipe that has a writer by a new one.
func renew(fifo string) error {
	if err := syscall.Mkfifo(fifo+".new", 0o600); err != nil {
		return err
	}
	return os.Rename(fifo+".new", fifo)
}

// mourn discards the deaths of further runs.
func (r *rig) mourn() {
	go func() {
		for {
			select {
			case <-r.death:
			case <-r.t.Context().Done():
				return
			}
		}
	}()
}

func (r *rig) kill() {
	r.cmd.Process.Kill()
	if r.t.Failed() {
		r.t.Logf("the runner said:\n%s", &r.heard)
	}
}

func wait[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(clienttest.Patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// line waits for a line of the runner that contains these words.
func (r *rig) line(words string) string {
	r.t.Helper()
	for {
		line := wait(r.t, "line with "+words, r.lines)
		if strings.Contains(line, words) {
			return line
		}
		if line == "" {
			r.t.Fatalf("the runner ended and never said %q", words)
		}
	}
}

func (r *rig) word(want string) {
	r.t.Helper()
	if got := wait(r.t, want+" from the command", r.said); got != want {
		r.t.Fatalf("the command says %q, want %q", got, want)
	}
}

// before demands that all processes of the command were dead by then.
func (r *rig) before(until int64) {
	r.t.Helper()
	died := wait(r.t, "death of the command", r.death)
	r.t.Logf("dead %v before the end of the lease", time.Duration(until-died))
	if late := r.late(until-int64(short/10), until, died); late >= 0 {
		r.t.Errorf("it died %v after the end of its lease", late)
	}
}

// late returns how much later than due something came, without the time in which the machine ran no process. In
// that time, nothing could kill or die.
func (r *rig) late(begun, due, came int64) time.Duration {
	hiccups := meter.Between(election.Instant(begun), election.Instant(came))
	still, _ := hiccup.Total(hiccups)
	if still > 0 {
		r.t.Log(hiccup.Describe(hiccups))
	}
	return time.Duration(came-due) - still
}

func (r *rig) status(want int) {
	r.t.Helper()
	if got := wait(r.t, "end of the runner", r.ended); got != want {
		r.t.Errorf("exit status %d, want %d", got, want)
	}
}

// guard finds the runner's guard.
func (r *rig) guard() int {
	r.t.Helper()
	for _, pid := range r.children(r.cmd.Process.Pid) { // beside the guard there may be the guard of a check
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(line), guard.Word) {
			return pid
		}
	}
	r.t.Fatal("there is no guard")
	return 0
}

// child finds the only child of a process.
func (r *rig) child(of int) int {
	r.t.Helper()
	if all := r.children(of); len(all) > 0 {
		return all[0]
	}
	r.t.Fatalf("process %d has no child", of)
	return 0
}

func (r *rig) children(of int) (all []int) {
	r.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// freeze stops a process and waits until each of its threads has stopped.
func (r *rig) freeze(pid int) {
	r.t.Helper()
	r.signal(pid, syscall.SIGSTOP)
	for deadline := time.Now().Add(clienttest.Patience); !stopped(pid); runtime.Gosched() {
		if time.Now().After(deadline) {
			r.t.Fatalf("process %d does not stop", pid)
		}
	}
}

func stopped(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return len(stats) > 0
}

func (r *rig) signal(pid int, s syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		r.t.Fatal(err)
	}
}
