package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// hanging replaces /bin/sh, for everything that this goroutine starts from now on, by a copy whose execution
// can hang.
func hanging(t *testing.T) *hangs {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, which CI is: to hang an exec by fanotify")
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(shell)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "sh")
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // the thread and its mounts end with the test
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Skipf("can't have its own mounts: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(copied, shell, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		t.Skipf("no fanotify here: %v", err)
	}
	events := os.NewFile(uintptr(fd), "fanotify")
	t.Cleanup(func() { events.Close() }) // without a listener, the kernel lets all executions go on
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_EXEC_PERM, unix.AT_FDCWD, copied); err != nil {
		t.Skipf("no fanotify here that can deny: %v", err)
	}
	h := &hangs{}
	go h.answer(events)
	return h
}

// hangs makes executions of the shell hang.
type hangs struct {
	more  atomic.Int64 // how many of the next executions hang
	held  atomic.Bool  // whether they go on hanging
	count atomic.Int64 // how many have hung
}

// everything is more executions than will come.
const everything = 1 << 40

func (h *hangs) begin(n int64) {
	h.held.Store(true)
	h.more.Store(n)
}

func (h *hangs) end() {
	h.more.Store(0)
	h.held.Store(false)
}

// answer lets each execution go on, at once or when the hanging ends.
func (h *hangs) answer(events *os.File) {
	buffer := make([]byte, 4096)
	for {
		n, err := events.Read(buffer)
		if err != nil {
			return
		}
		for rest := buffer[:n]; len(rest) >= int(binary.Size(unix.FanotifyEventMetadata{})); {
			var e unix.FanotifyEventMetadata
			if _, err := binary.Decode(rest, binary.NativeEndian, &e); err != nil || e.Event_len == 0 {
				return
			}
			rest = rest[e.Event_len:]
			hangs := h.more.Add(-1) >= 0
			go func() {
				if hangs {
					h.count.Add(1)
				}
				again := time.NewTicker(time.Millisecond)
				defer again.Stop()
				for hangs && h.held.Load() {
					<-again.C
				}
				var reply bytes.Buffer
				_ = binary.Write(&reply, binary.NativeEndian, unix.FanotifyResponse{Fd: e.Fd, Response: unix.FAN_ALLOW})
				_, _ = events.Write(reply.Bytes())
				unix.Close(int(e.Fd))
			}()
		}
	}
}

// A disk may not answer, or a scanner may check the program. Then only the guard hangs, not the agent or doyen
// act.
func TestAnExecThatHangsStopsNothingElse(t *testing.T) {
	t.Parallel()
	h := hanging(t)
	for range *rounds {
		m, agent, act, _ := startHanging(t, h)
		began := alarm.Now()
		m.until(t, "nine seconds have passed, in which the agent answers", func(ctx context.Context) bool {
			m.answers(ctx, t, "a")
			return alarm.Now()-began > int64(9*time.Second)
		})
		h.end()
		m.signal(syscall.SIGCONT, act...)
		// The first run never executed, since the guard killed it. It is repeated.
		m.until(t, "the run is repeated", func(context.Context) bool { return strings.Contains(m.read("other.events"), "leading") })
		if _, err := m.client("a").Resign(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
		m.until(t, "the end", func(context.Context) bool { return strings.Contains(m.read("other.events"), "none") })
		if got := m.read("other.events"); strings.Count(got, "leading") != 1 {
			t.Errorf("the runs were\n%s", got)
		}
		m.same(t, agent, act)
		m.close()
	}
}

// While doyen act is frozen and gives no receipt, only the deadline shows that the hanging run has ended.
func TestAHandOverWaitsForAnExecThatHangs(t *testing.T) {
	t.Parallel()
	h := hanging(t)
	for round := range *rounds {
		m, agent, act, due := startHanging(t, h)
		began := alarm.Now()
		go m.client("a").Resign(t.Context(), "default") // the answer comes after the hand-over
		m.until(t, "another leads, and meanwhile a answers", func(ctx context.Context) bool {
			m.answers(ctx, t, "a")
			return m.leads(ctx, "b") || m.leads(ctx, "c")
		})
		if early := due - alarm.Now(); early > 0 {
			t.Errorf("another leads %v before the deadline of what hangs, and %v after the resignation", time.Duration(early), time.Duration(alarm.Now()-began))
		}
		m.until(t, "nine seconds have passed, or in later rounds the deadline has", func(ctx context.Context) bool {
			m.answers(ctx, t, "a")
			return round > 0 || alarm.Now()-began > int64(9*time.Second)
		})
		h.end()
		m.signal(syscall.SIGCONT, act...)
		m.until(t, "what hung is undone", func(context.Context) bool { return strings.Contains(m.read("other.events"), "none") })
		if got := m.read("other.events"); strings.Contains(got, "leading") {
			t.Errorf("it was executed after its deadline:\n%s", got)
		}
		m.lead(t, "a")
		m.until(t, "a acts again", func(context.Context) bool { return strings.Contains(m.read("other.events"), "leading") })
		m.same(t, agent, act)
		m.close()
	}
}

// While one check's exec hangs, doyen act goes on with the other check, the hook and the receipt.
func TestACheckWhoseExecHangsDelaysNothingElse(t *testing.T) {
	t.Parallel()
	h := hanging(t)
	for range *rounds {
		m := keptWith(t, "a", "#!/bin/sh\n[ $# = 0 ] || exec echo >> $0.$1\necho $DOYEN_EVENT >> $0.events\n", "on-change: %[1]s\n"+
			"check: {command: '%[1]s one', every: 100ms, timeout: 1m}\n"+
			"elections: {payments: {check: {command: '%[1]s two', every: 100ms, timeout: 1m}}}\n", "a")
		outcomes := func() [2]int { return [2]int{len(m.read("hook.one")), len(m.read("hook.two"))} }
		m.until(t, "the hook has run, and each check", func(context.Context) bool {
			n := outcomes()
			return strings.HasSuffix(m.events(), "leading\n") && n[0] > 0 && n[1] > 0
		})
		agent, act := m.agent(t, "a").PID, m.of(t, "act")
		h.count.Store(0)
		h.begin(1)
		m.until(t, "a check hangs", func(context.Context) bool { return h.count.Load() > 0 })
		began, before := alarm.Now(), outcomes()
		m.until(t, "the other check goes on", func(context.Context) bool {
			n := outcomes()
			return n[0] > before[0]+5 || n[1] > before[1]+5
		})
		receipts := m.receipts(t)
		if _, err := m.client("a").Resign(t.Context(), "default"); err != nil {
			t.Error(err)
		}
		m.until(t, "another leads", func(ctx context.Context) bool { return m.leads(ctx, "b") || m.leads(ctx, "c") })
		m.until(t, "its receipt is counted", func(context.Context) bool { return m.receipts(t) != receipts })
		if !strings.Contains(m.events(), "leading\nnone\n") {
			t.Errorf("the hook ran with:\n%s", m.events())
		}
		m.lead(t, "a")
		m.until(t, "the hook acts again", func(context.Context) bool { return strings.HasSuffix(m.events(), "leading\n") })
		m.until(t, "nine seconds have passed, in the long form, in which the agent answers", func(ctx context.Context) bool {
			m.answers(ctx, t, "a")
			return *rounds == 1 || alarm.Now()-began > int64(9*time.Second)
		})
		if n := outcomes(); n[0] > before[0]+1 && n[1] > before[1]+1 { // one further run may have been about to write
			t.Errorf("no check hangs: %v, then %v", before, n)
		}
		before = outcomes()
		h.end()
		m.until(t, "both checks go on", func(context.Context) bool {
			n := outcomes()
			return n[0] > before[0] && n[1] > before[1]
		})
		m.same(t, agent, act)
		m.close()
	}
}

// receipts returns the metric that counts how many terms of a were released by a receipt.
func (m *mesh) receipts(t *testing.T) string {
	t.Helper()
	overSocket := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", m.socket("a")) // over --http, the metrics are only updated once a second
	}
	asker := http.Client{Transport: &http.Transport{DialContext: overSocket, DisableKeepAlives: true}}
	response, err := asker.Get("http://doyen/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	found := regexp.MustCompile(`doyen_campaign_releases_total{.*kind="receipt"} (.*)`).FindSubmatch(text)
	if err != nil || found == nil {
		t.Fatalf("%v, metrics:\n%s", err, text)
	}
	return string(found[1])
}

// startHanging starts agents. Agent a leads, and its hook's exec hangs. a's doyen act is frozen, so only the
// guard can end the run; due is its deadline.
func startHanging(t *testing.T, h *hangs) (m *mesh, agent int, act []int, due int64) {
	t.Helper()
	for {
		m = keptWith(t, "a", "#!/bin/sh\necho $DOYEN_EVENT >> $0.events\n", "on-change: %s\n", "a")
		m.until(t, "the first run", func(context.Context) bool { return strings.Contains(m.events(), "leading") })
		agent, act = m.agent(t, "a").PID, m.of(t, "act")
		m.write(t, "other", "#!/bin/sh\necho $DOYEN_EVENT >> $0.events\n")
		m.write(t, "a.yaml", "on-change: "+filepath.Join(m.dir, "other")+"\n")
		before := h.count.Load()
		h.begin(everything)
		if _, err := m.client("a").Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.until(t, "an exec hangs", func(context.Context) bool { return h.count.Load() > before })
		m.freeze(t, act...)
		e, err := m.client("a").Election(t.Context(), "default", client.ElectionOptions{})
		if err == nil && e.IsLeader {
			return m, agent, act, e.ValidUntilBoottimeNS
		}
		t.Logf("begun again: a has lost the lead meanwhile, as on a busy machine: %+v, %v", e, err)
		h.end()
		m.close()
	}
}

// answers demands that an agent answers within a second.
func (m *mesh) answers(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	limit, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := m.client(name).Agent(limit); err != nil {
		t.Errorf("%s does not answer: %v", name, err)
	}
}

// same demands that agent a and its doyen act are still these processes.
func (m *mesh) same(t *testing.T, agent int, act []int) {
	t.Helper()
	if now := m.agent(t, "a").PID; now != agent || !slices.Equal(m.of(t, "act"), act) {
		t.Errorf("agent %d and act %v are now %d and %v", agent, act, now, m.of(t, "act"))
	}
}
