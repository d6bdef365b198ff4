package hook

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
)

// guard is a process that kills the hook runs in progress when this process has died or is
// frozen. Otherwise a command would act for the leader, and nobody could end it. The guard has
// a deadline for each run, which this process prolongs, and reads the clock itself; see Guard.
type guard struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	end   *os.File // this process's end of the socket: the guard notices when it closes; nil: closed
	rest  []byte   // of a line that is not complete yet
	kills map[uint64]bool
}

// guardedScript has the run report itself to the guard before it starts the command, so that
// the run is guarded from the first moment. If the guard has ended, writing to it kills only
// the subshell.
//
// It then compares the clock with the deadline: an exec that hangs may end after it, and then the
// command must not run at all. Later the guard keeps the deadline.
const guardedScript = `(echo "` + wordRun + ` $1 $$ $2" >&3) 2>/dev/null; exec 3>&-; ` +
	`if read up idle </proc/uptime; then [ "${up%.*}${up#*.}" -lt "$3" ] || { echo "its deadline had passed before it could be run"; exit 1; }; fi; ` +
	`exec /bin/sh -c "$0"`

func startGuard() (*guard, error) {
	program := "/proc/self/exe" // even if another file has taken the program's name
	if _, err := os.Stat(program); err != nil {
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("start guard: %w", err)
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("start guard: make its socket: %w", err)
	}
	for _, fd := range pair {
		unix.CloseOnExec(fd)
	}
	g := &guard{end: os.NewFile(uintptr(pair[0]), "guard"), ended: make(chan struct{}), kills: map[uint64]bool{}}
	other := os.NewFile(uintptr(pair[1]), "agent")
	defer other.Close()
	g.cmd = &exec.Cmd{Path: program, Args: []string{os.Args[0], GuardWord}, ExtraFiles: []*os.File{other}} // the guard's descriptor 3
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                                                // a signal to this process's group must not end the guard first
	if err := g.cmd.Start(); err != nil {
		g.end.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	go func() {
		_ = g.cmd.Wait() // the result means nothing
		close(g.ended)
	}()
	return g, nil
}

// cover makes a run that is not started yet report itself and its deadline to the guard.
func (g *guard) cover(run *exec.Cmd, key uint64, until election.Instant) {
	if g == nil {
		return
	}
	command := run.Args[len(run.Args)-1]
	run.Args = []string{run.Path, "-c", guardedScript, command, strconv.FormatUint(key, 10), strconv.FormatInt(int64(until), 10), strconv.FormatInt(int64(until)/int64(10*time.Millisecond), 10)}
	run.ExtraFiles = []*os.File{g.end} // the run's descriptor 3
}

// adopt reports a run to the guard that was started under another guard, or under none.
func (g *guard) adopt(key uint64, group int, until election.Instant) {
	g.say(fmt.Sprintf("%s %d %d %d\n", wordRun, key, group, until))
}

// prolong extends the deadline of a run to that instant.
func (g *guard) prolong(key uint64, until election.Instant) {
	g.say(fmt.Sprintf("%s %d %d\n", wordUntil, key, until))
}

// over reports the end of the run to the guard.
func (g *guard) over(key uint64) { g.say(fmt.Sprintf("%s %d\n", wordOver, key)) }

// say never waits. A guard that is frozen or has ended gets nothing, and needs nothing: the
// last deadline that it received holds.
func (g *guard) say(line string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end != nil {
		_, _ = unix.SendmsgN(int(g.end.Fd()), []byte(line), nil, nil, unix.MSG_DONTWAIT)
	}
}

// killed reports whether the guard has killed the run. The run has ended.
func (g *guard) killed(key uint64) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	buffer := make([]byte, 4096)
	for g.end != nil {
		n, _, err := unix.Recvfrom(int(g.end.Fd()), buffer, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			break
		}
		lines := bytes.Split(append(g.rest, buffer[:n]...), []byte("\n"))
		for _, line := range lines[:len(lines)-1] {
			if number, ok := bytes.CutPrefix(line, []byte(wordKilled+" ")); ok && len(g.kills) < maxWaiting {
				of, _ := strconv.ParseUint(string(number), 10, 64) // no run has number 0
				g.kills[of] = true
			}
		}
		g.rest = bytes.Clone(lines[len(lines)-1])
	}
	was := g.kills[key]
	delete(g.kills, key)
	return was
}

// close ends the guard. No run is in progress then.
func (g *guard) close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	end := g.end
	g.end = nil
	g.mu.Unlock()
	if end != nil {
		end.Close()
	}
	_ = g.cmd.Process.Signal(syscall.SIGCONT) // a stopped guard would never end
	<-g.ended
}
