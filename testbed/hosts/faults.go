package hosts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/observe"
)

// ErrUnavailable reports that a fault is impossible on this machine or in this cluster.
var ErrUnavailable = errors.New("not available here")

func unavailable(what, why string) error {
	return fmt.Errorf("%s: %w: %s", what, ErrUnavailable, why)
}

// Stuck is the delay with which SlowDisk lets no fsync end.
const Stuck = time.Duration(math.MaxInt64)

// inSandbox calls do on a thread in the host's sandbox.
func (h *Host) inSandbox(do func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errors.New("the testbed is closed")
	}
	thread, err := h.thread()
	if err != nil {
		return err
	}
	return thread.do(do)
}

func (h *Host) wipe() error {
	if h.Status() != Down {
		return ErrUp
	}
	return h.inSandbox(func() error {
		files, err := os.ReadDir(h.config.DataDir)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		for _, f := range files {
			err = errors.Join(err, os.RemoveAll(filepath.Join(h.config.DataDir, f.Name())))
		}
		return err
	})
}

func (h *Host) starve(yes bool) {
	h.weight.Lock()
	defer h.weight.Unlock()
	switch {
	case yes && h.feed == nil:
		h.feed = background(h.ration)
	case !yes && h.feed != nil:
		h.feed()
		h.feed = nil
	}
}

func (h *Host) crowd(n int) error {
	h.weight.Lock()
	defer h.weight.Unlock()
	h.busy.End()
	h.busy = nil
	if n == 0 {
		return nil
	}
	if err := lowerPriority(h.pids()); err != nil {
		return err
	}
	return h.inSandbox(func() (err error) {
		h.busy, err = StartBusy(n, func(cmd *exec.Cmd) error { tie(cmd); return cmd.Start() })
		return err
	})
}

// Busy are processes that use the processor all the time.
type Busy []*exec.Cmd

// StartBusy starts n busy processes, each by a call of start. The caller must End them, even after
// an error.
func StartBusy(n int, start func(*exec.Cmd) error) (b Busy, err error) {
	for range n {
		cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := start(cmd); err != nil {
			return b, fmt.Errorf("start a busy program: %w", err)
		}
		b = append(b, cmd)
	}
	return b, nil
}

// End ends the processes. A second call does nothing.
func (b Busy) End() {
	for _, cmd := range b {
		_ = cmd.Process.Kill() // fails only if it has ended
		_ = cmd.Wait()         // reports only that it was killed
	}
}

const minRate, maxRate = 0.5, 2

// Real translates an instant on the clock of this host's processes to the machine's time. It is
// right only for processes that started after the clock's last change.
func (h *Host) Real(at election.Instant) election.Instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.clocks) - 1; i >= 0; i-- {
		if at >= h.clocks[i].read {
			return h.clocks[i].real(at)
		}
	}
	return at
}

// clock is how a host's CLOCK_BOOTTIME runs from an instant on. The zero value is the
// machine's own clock.
type clock struct {
	from election.Instant // of the machine's clock
	read election.Instant // what the host's clock showed at that instant
	rate float64
	wall time.Duration // by how much the wall clock is ahead
}

// isTrue reports whether the clock shows the machine's time.
func (c clock) isTrue() bool { return c.wall == 0 && c.keepsTime() }

func (c clock) keepsTime() bool { return c.rate == 0 || c.rate == 1 && c.from == c.read }

// at is what the host's clock shows at an instant of the machine's clock.
func (c clock) at(now election.Instant) election.Instant {
	if c.keepsTime() {
		return now
	}
	return c.read + election.Instant(float64(now-c.from)*c.rate)
}

// real is the instant of the machine's clock at which the host's clock shows the given instant.
func (c clock) real(shown election.Instant) election.Instant {
	if c.keepsTime() {
		return shown
	}
	return c.from + election.Instant(float64(shown-c.read)/c.rate)
}

const (
	// A starved host's processes run for a tenth of each period, in one piece. The kernel does
	// the same to a control group that uses up its share.
	starvePeriod = 100 * time.Millisecond
	starveShare  = 10 * time.Millisecond
)

// ration lets the host's processes run for a share of each period and stops them for the rest, by
// signals. Unlike a control group, this needs no rights. In the end it leaves them running.
func (h *Host) ration(ctx context.Context) {
	for observe.Sleep(ctx, starveShare) == nil {
		h.pulse(syscall.SIGSTOP)
		_ = observe.Sleep(ctx, starvePeriod-starveShare)
		h.pulse(syscall.SIGCONT)
	}
}

// background starts run in a goroutine. end ends the context of run, and waits until run has returned.
func background(run func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}
