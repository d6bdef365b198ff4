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
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/observe"
)

// ErrUnavailable reports that a fault is impossible on this machine or in this cluster.
var ErrUnavailable = errors.New("not available here")

func unavailable(what, why string) error {
	return fmt.Errorf("%s: %w: %s", what, ErrUnavailable, why)
}

// Stuck is the delay with which SlowDisk lets no fsync end.
const Stuck = time.Duration(math.MaxInt64)

// inSandbox calls do on a thread in the host's sandbox. It returns the instant just before the call.
func (h *Host) inSandbox(what string, do func() error) (election.Instant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, fmt.Errorf("%s of %s: the testbed is closed", what, h.Name())
	}
	thread, err := h.thread()
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", what, h.Name(), err)
	}
	at := boottime.Now()
	return at, wrap.Error(thread.do(do), "%s of %s", what, h.Name())
}

// Wipe empties the data directory of a host that is down. From the next start on, the host's agent
// has another peer ID. If the host is not down, Wipe returns ErrUp.
func (h *Host) Wipe() (election.Instant, error) {
	if h.Status() != Down {
		return 0, fmt.Errorf("wipe %s: %w", h.Name(), ErrUp)
	}
	return h.inSandbox("wipe the disk", func() error {
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

// FillDisk leaves no byte free on the host's disk until FreeDisk is called. Like all faults below,
// it returns the instant just before it acts. It needs a cluster in Namespaces, with DiskFaults.
func (h *Host) FillDisk() (election.Instant, error) {
	return h.inSandbox("fill the disk", h.sandbox.fill)
}

func (h *Host) FreeDisk() (election.Instant, error) {
	return h.inSandbox("free the disk", h.sandbox.free)
}

// OtherBoot shows the host's processes another boot ID of the kernel from now on. It needs a
// cluster in Namespaces, with DiskFaults.
func (h *Host) OtherBoot() (election.Instant, error) {
	return h.inSandbox("change the boot", func() error { return h.sandbox.otherBoot(filepath.Join(h.dir, "boot_id")) })
}

// SlowDisk makes each fsync and fdatasync of the host's processes take longer by d, even those
// that have begun. With Stuck, they wait until SlowDisk is called again. 0 ends the delay.
// SlowDisk needs a cluster with DiskFaults.
func (h *Host) SlowDisk(d time.Duration) (election.Instant, error) {
	if d < 0 {
		return 0, fmt.Errorf("slow the disk of %s: %s is below 0s", h.Name(), d)
	}
	at := boottime.Now()
	return at, wrap.Error(h.sandbox.slow(d), "slow the disk of %s", h.Name())
}

// Starve leaves the host's processes a tenth of a processor: it stops them for nine tenths of the
// time.
func (h *Host) Starve(on bool) (election.Instant, error) {
	h.weight.Lock()
	defer h.weight.Unlock()
	at := boottime.Now()
	switch {
	case on && h.feed == nil:
		h.feed = background(h.ration)
	case !on && h.feed != nil:
		h.feed()
		h.feed = nil
	}
	return at, nil
}

// Crowd gives the host's processes, except its keeper, the lowest priority, for good, and starts
// n busy processes that compete with them for the processor. If n is 0, it ends the busy processes.
func (h *Host) Crowd(n int) (election.Instant, error) {
	h.weight.Lock()
	defer h.weight.Unlock()
	h.busy.End()
	h.busy = nil
	if n == 0 {
		return boottime.Now(), nil
	}
	if err := lowerPriority(h.pids()); err != nil {
		return 0, fmt.Errorf("crowd %s: %w", h.Name(), err)
	}
	return h.inSandbox("crowd the processor", func() (err error) {
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

// ClockRate makes CLOCK_BOOTTIME and CLOCK_MONOTONIC, as system calls read them, run at the rate,
// without a step, for processes that start on the host from now on; 1 is true time. All else keeps
// true time, also timers. So an agent with a fast clock believes that its timers wake it late. Each
// reading costs some 20 µs. Real translates stamps.
func (h *Host) ClockRate(rate float64) (election.Instant, error) {
	if !(rate >= minRate && rate <= maxRate) {
		return 0, fmt.Errorf("set clock of %s: rate %v: want %v to %v", h.Name(), rate, minRate, maxRate)
	}
	if err := canIntercept(); err != nil {
		return 0, fmt.Errorf("set clock of %s: %w", h.Name(), unavailable("change its rate", err.Error()))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rate = rate
	return boottime.Now(), nil
}

// WallClock puts the wall clock (CLOCK_REALTIME) ahead, for processes that start on the host from now on.
func (h *Host) WallClock(ahead time.Duration) (election.Instant, error) {
	if err := canIntercept(); err != nil {
		return 0, fmt.Errorf("set wall clock of %s: %w", h.Name(), unavailable("change it", err.Error()))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall = ahead
	return boottime.Now(), nil
}

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
