package hosts

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
)

// ErrUnavailable says that this machine, or this cluster, can't have a fault.
var ErrUnavailable = errors.New("not available here")

func unavailable(what, why string) error {
	return fmt.Errorf("%s: %w: %s", what, ErrUnavailable, why)
}

// Stuck is a disk whose writes do not end, see SlowDisk.
const Stuck = time.Duration(math.MaxInt64)

// inSandbox does something on a thread of the host, and returns the instant just
// before.
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
	if err := thread.do(do); err != nil {
		return 0, fmt.Errorf("%s of %s: %w", what, h.Name(), err)
	}
	return at, nil
}

// Wipe empties the data directory of a host that is down: its agent comes back
// as another one. ErrUp if it is not down.
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

// FillDisk leaves no byte on the host's disk until FreeDisk. Like the faults
// below it returns the instant just before. It needs a cluster in Namespaces,
// with DiskFaults.
func (h *Host) FillDisk() (election.Instant, error) {
	return h.inSandbox("fill the disk", h.sandbox.fill)
}

func (h *Host) FreeDisk() (election.Instant, error) {
	return h.inSandbox("free the disk", h.sandbox.free)
}

// OtherBoot has the host's processes see another run of the kernel from now on. It needs a
// cluster in Namespaces, with DiskFaults.
func (h *Host) OtherBoot() (election.Instant, error) {
	return h.inSandbox("change the boot", func() error { return h.sandbox.otherBoot(filepath.Join(h.dir, "boot_id")) })
}

// SlowDisk makes each fsync and fdatasync of the host's processes take that
// much longer, those under way included. Stuck: they wait until SlowDisk is
// called again. 0 ends it. It needs a cluster with DiskFaults.
func (h *Host) SlowDisk(d time.Duration) (election.Instant, error) {
	if d < 0 {
		return 0, fmt.Errorf("slow the disk of %s: %s is below 0s", h.Name(), d)
	}
	at := boottime.Now()
	if err := h.sandbox.slow(d); err != nil {
		return 0, fmt.Errorf("slow the disk of %s: %w", h.Name(), err)
	}
	return at, nil
}

// Starve leaves the host's processes a tenth of a processor, which they share
// with busy ones; off ends it.
func (h *Host) Starve(on bool) (election.Instant, error) {
	return h.burdened("starve", func(thread *spawner) error { return h.burden.starve(on, thread, h.pids(), h.pulse) })
}

// LimitMemory bounds the memory that the host's processes take from now on, in
// bytes, and ends what goes beyond it; 0 ends it.
func (h *Host) LimitMemory(bytes int64) (election.Instant, error) {
	return h.burdened("limit the memory of", func(*spawner) error {
		if bytes < 0 {
			return fmt.Errorf("%d bytes is below 0", bytes)
		}
		return h.burden.limit(bytes, h.pids())
	})
}

// burdened does something to the host's burden, and returns the instant just
// before.
func (h *Host) burdened(what string, do func(*spawner) error) (election.Instant, error) {
	h.weight.Lock()
	defer h.weight.Unlock()
	thread, err := h.weigh()
	at := boottime.Now()
	if err == nil {
		err = do(thread)
	}
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", what, h.Name(), err)
	}
	return at, nil
}

// weigh makes the host's burden, and returns where its processes start.
func (h *Host) weigh() (*spawner, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errors.New("the testbed is closed")
	}
	if h.burden == nil {
		h.burden = newBurden(h.Name())
	}
	return h.thread()
}

// admit puts a new process under the host's burden.
func (h *Host) admit(pid int) error {
	h.weight.Lock()
	defer h.weight.Unlock()
	if h.burden == nil || pid == 0 {
		return nil
	}
	return h.burden.admit(pid)
}

const minRate, maxRate = 0.5, 2

// ClockRate makes CLOCK_BOOTTIME run at that rate for processes that are started
// on the host from now on, without a step; 1 is true time. Other clocks and
// timers run true: an agent asks this one when a timer rings, so by a fast clock
// it wakes up that much late. Each reading costs some 20 µs. Real translates
// stamps.
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

// Real is the machine's time of an instant that a process of this host read from
// its own clock. Processes that were started before the clock's last change are
// not meant.
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
