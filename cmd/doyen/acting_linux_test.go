package main

import (
	"bytes"
	"context"
	"encoding/binary"
	testflag "flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// rounds is how often each of these tests is done; by hand it is more.
var rounds = testflag.Int("rounds", 1, "how often what acts is killed and frozen")

// leaseOfMesh is what the agents of a mesh are started with.
const leaseOfMesh = 3 * time.Second

// deed is from when to when one run for leading acted, in ms of CLOCK_BOOTTIME. /proc/uptime shows ten of
// them at once.
type deed struct {
	run         string
	first, last int64
}

// deeds reads what the hooks have written: a run writes all the time, by itself and by a child.
func (m *mesh) deeds(t *testing.T) []deed {
	t.Helper()
	text, _ := os.ReadFile(filepath.Join(m.dir, "acts"))
	all := map[string]deed{}
	for line := range strings.Lines(string(text)) {
		var host string
		var pid, second, part int64
		if _, err := fmt.Sscanf(line, "%s %d %d.%d\n", &host, &pid, &second, &part); err != nil {
			continue // it is being written
		}
		run, at := fmt.Sprint(host, pid), 1000*second+10*part
		if d, known := all[run]; known {
			all[run] = deed{run, min(d.first, at), max(d.last, at)}
		} else {
			all[run] = deed{run, at, at}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b deed) int { return int(a.first - b.first) })
}

// startActing starts agents whose hooks act; the child of a run only if withChild. It returns the run of a.
func startActing(t *testing.T, withChild bool) (m *mesh, run string) {
	t.Helper()
	act := `act() { while :; do read up idle </proc/uptime; echo "$DOYEN_LEADER $$ $up" >> $0.acts; sleep 0.01; done; }` + "\n"
	child := "act &\n"
	if !withChild {
		child = ""
	}
	m = keptWith(t, "a", "#!/bin/sh\n[ $DOYEN_EVENT = leading ] || exit 0\n"+act+child+"act\n", "on-change: %s\n", "a", "b", "c")
	if err := os.Symlink(filepath.Join(m.dir, "hook.acts"), filepath.Join(m.dir, "acts")); err != nil {
		t.Fatal(err)
	}
	m.until(t, "a acts", func(context.Context) bool { // another agent may have led before
		for _, d := range m.deeds(t) {
			run = d.run
		}
		return strings.HasPrefix(run, "a")
	})
	return m, run
}

// of returns the processes of that kind below the keeper of a.
func (m *mesh) of(t *testing.T, kind string) (pids []int) {
	t.Helper()
	for pid, args := range doyens(t, m.agents["a"].Process.Pid) {
		if len(args) > 1 && args[1] == kind {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (m *mesh) signal(s syscall.Signal, pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // another signal may have come first
	}
}

// Whatever is killed or frozen: a run for leading is dead before its lease ends, and no other acts
// before.
func TestNoTwoRunsActAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		child bool
		fault func(t *testing.T, m *mesh, keeper int) // what is frozen goes on with the keeper's children
	}{
		"the agent is frozen": {true, func(t *testing.T, m *mesh, keeper int) {
			m.signal(syscall.SIGSTOP, append([]int{keeper}, m.of(t, "agent")...)...)
		}},
		"act is frozen": {true, func(t *testing.T, m *mesh, _ int) {
			act := m.of(t, "act")
			m.signal(syscall.SIGSTOP, act...)
			last := int64(0)
			quiet := alarm.Now() // since when
			m.until(t, "nothing acts", func(context.Context) bool {
				all := m.deeds(t)
				if now := all[len(all)-1].last; now != last {
					last, quiet = now, alarm.Now()
				}
				return alarm.Now()-quiet > int64(time.Second)
			})
			m.signal(syscall.SIGCONT, act...)
		}},
		"the keeper is killed": {true, func(t *testing.T, m *mesh, keeper int) { m.signal(syscall.SIGKILL, keeper) }},
		"act and its guards are killed together": {true, func(t *testing.T, m *mesh, _ int) {
			m.signal(syscall.SIGKILL, append(m.of(t, "act"), m.of(t, "guard")...)...)
		}},
		"everything is killed together": {false, func(t *testing.T, m *mesh, keeper int) { // with a child, the service manager kills that
			m.signal(syscall.SIGKILL, slices.Concat(m.of(t, "act"), m.of(t, "guard"), m.of(t, "agent"), []int{keeper})...)
		}},
		"the agent and act are frozen, and the guards killed": {false, func(t *testing.T, m *mesh, keeper int) {
			m.signal(syscall.SIGSTOP, slices.Concat([]int{keeper}, m.of(t, "agent"), m.of(t, "act"))...)
			m.signal(syscall.SIGKILL, m.of(t, "guard")...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range *rounds {
				noTwoRuns(t, test.child, test.fault)
			}
		})
	}
}

func noTwoRuns(t *testing.T, child bool, fault func(*testing.T, *mesh, int)) {
	t.Helper()
	m, before := startActing(t, child)
	due := alarm.Now()
	fault(t, m, m.agents["a"].Process.Pid)
	m.until(t, "another run acts for a while", func(context.Context) bool {
		all := m.deeds(t)
		end := all[len(all)-1]
		return end.run != before && end.last-end.first > 500
	})
	m.close()
	all := m.deeds(t)
	for i := range all[1:] {
		if late := all[i].last - (due+int64(leaseOfMesh))/int64(time.Millisecond); all[i].run == before && late > 0 {
			t.Errorf("it acted for %d ms after its lease", late)
		}
		if all[i+1].first < all[i].last {
			t.Errorf("two runs act at once: %+v", all)
		}
	}
}

// The agent's death is nothing to what acts beside it.
func TestASecondLifeGoesOnWithTheRunOfTheFirst(t *testing.T) {
	t.Parallel()
	const each = 3 // rounds of one leadership: a run has a limit
	for n := 0; n < *rounds; n += each {
		m, run := startActing(t, true)
		for range min(each, *rounds-n) {
			former := m.agent(t, "a").PID
			m.signal(syscall.SIGKILL, former)
			m.until(t, "the next life leads", func(ctx context.Context) bool {
				a, err := m.client("a").Agent(ctx)
				if err != nil || a.PID == former {
					return false
				}
				e, err := m.client("a").Election(ctx, "default", client.ElectionOptions{})
				return err == nil && e.IsLeader
			})
			led := alarm.Now() / int64(time.Millisecond)
			m.until(t, "the run acts on", func(context.Context) bool {
				all := m.deeds(t)
				newest := all[len(all)-1]
				return newest.run != run || newest.last > led
			})
		}
		if all := m.deeds(t); all[len(all)-1].run != run {
			t.Errorf("the run was %s, and there were %+v", run, all)
		}
		m.close()
	}
}

// hanging makes the shell of all that this goroutine starts from now on a file whose execution hangs while
// the answer is yes, and counts how many have hung.
func hanging(t *testing.T) (yes *atomic.Bool, hung *atomic.Int64) {
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
	runtime.LockOSThread() // which ends with the test, and its view of the files with it
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
	t.Cleanup(func() { events.Close() }) // which lets all go on
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_EXEC_PERM, unix.AT_FDCWD, copied); err != nil {
		t.Skipf("no fanotify here that can deny: %v", err)
	}
	yes, hung = &atomic.Bool{}, &atomic.Int64{}
	go answer(events, yes, hung)
	return yes, hung
}

// answer lets each execution go on, at once or when hanging has ended.
func answer(events *os.File, yes *atomic.Bool, hung *atomic.Int64) {
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
			go func() {
				if yes.Load() {
					hung.Add(1)
				}
				again := time.NewTicker(time.Millisecond)
				defer again.Stop()
				for yes.Load() {
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

// A disk that does not answer, or a scanner of programs: what hangs is the guard's, and neither the
// agent's nor that of doyen act.
func TestAnExecThatHangsStopsNothingElse(t *testing.T) {
	t.Parallel()
	yes, hung := hanging(t)
	for range *rounds {
		m, agent, act := startHanging(t, yes, hung)
		began := alarm.Now()
		m.until(t, "nine seconds have passed, in which the agent answers", func(ctx context.Context) bool {
			m.answers(ctx, t, "a")
			return alarm.Now()-began > int64(9*time.Second)
		})
		yes.Store(false)
		m.signal(syscall.SIGCONT, act...)
		// The run of which the guard has killed the exec is repeated; the first one never ran.
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

// Nothing but the deadline shows that a run has ended whose exec hangs while doyen act can't give a receipt.
func TestAHandOverWaitsForAnExecThatHangs(t *testing.T) {
	t.Parallel()
	yes, hung := hanging(t)
	for range *rounds {
		m, agent, act := startHanging(t, yes, hung)
		e, err := m.client("a").Election(t.Context(), "default", client.ElectionOptions{})
		if err != nil || !e.IsLeader {
			t.Fatalf("a does not lead: %+v, %v", e, err)
		}
		began := alarm.Now()
		go m.client("a").Resign(t.Context(), "default") // its answer comes after the hand-over
		m.until(t, "another leads, and meanwhile a answers", func(ctx context.Context) bool {
			m.answers(ctx, t, "a")
			return m.leads(ctx, "b") || m.leads(ctx, "c")
		})
		if early := e.ValidUntilBoottimeNS - alarm.Now(); early > 0 {
			t.Errorf("another leads %v before the deadline of what hangs, and %v after the resignation", time.Duration(early), time.Duration(alarm.Now()-began))
		}
		m.until(t, "nine seconds have passed", func(ctx context.Context) bool {
			m.answers(ctx, t, "a")
			return alarm.Now()-began > int64(9*time.Second)
		})
		yes.Store(false)
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

// startHanging starts agents of which a leads, and whose hook's exec hangs. Its doyen act is frozen, so that
// only the guard can end what hangs.
func startHanging(t *testing.T, yes *atomic.Bool, hung *atomic.Int64) (m *mesh, agent int, act []int) {
	t.Helper()
	m = keptWith(t, "a", "#!/bin/sh\necho $DOYEN_EVENT >> $0.events\n", "on-change: %s\n", "a")
	m.until(t, "the first run", func(context.Context) bool { return strings.Contains(m.read("hook.events"), "leading") })
	agent, act = m.agent(t, "a").PID, m.of(t, "act")
	m.write(t, "other", "#!/bin/sh\necho $DOYEN_EVENT >> $0.events\n")
	m.write(t, "agent.yaml", "on-change: "+filepath.Join(m.dir, "other")+"\n")
	before := hung.Load()
	yes.Store(true)
	if _, err := m.client("a").Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.until(t, "an exec hangs", func(context.Context) bool { return hung.Load() > before })
	m.signal(syscall.SIGSTOP, act...)
	return m, agent, act
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

// same demands that agent a and its doyen act are the processes that they were.
func (m *mesh) same(t *testing.T, agent int, act []int) {
	t.Helper()
	if now := m.agent(t, "a").PID; now != agent || !slices.Equal(m.of(t, "act"), act) {
		t.Errorf("agent %d and act %v are now %d and %v", agent, act, now, m.of(t, "act"))
	}
}
