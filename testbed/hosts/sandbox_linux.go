package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/netns"
	"github.com/doyen-election/doyen/testbed/observe"
)

// sandbox is where a host's processes run: its namespaces, its disk, its clock.
type sandbox struct {
	data  string      // the data directory
	space *netns.Host // nil on loopback
	disk  bool        // the disk can be slowed and, if space is not nil, filled

	mounts *os.File // the mount namespace, nil if it is the testbed's

	mu          sync.Mutex
	delay       time.Duration // of each sync
	supervisors []*supervisor
	full        *filler
}

// plain reports whether the sandbox has neither namespaces nor a disk of its own.
func (r *sandbox) plain() bool { return r.space == nil && !r.disk }

// enter moves the calling thread into the sandbox, under the given clock.
func (r *sandbox) enter(c clock) error {
	if r.space != nil {
		if err := r.space.Enter(); err != nil {
			return err
		}
	}
	if r.space != nil && r.disk {
		if err := r.enterMounts(); err != nil {
			return err
		}
	}
	calls := intercept{syncs: r.disk, clock: !c.isTrue()}
	if calls == (intercept{}) {
		return nil
	}
	calledBack, err := calls.install()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.supervisors = append(r.supervisors, newSupervisor(calledBack, c, r.delay))
	return nil
}

// diskSize is the size of a small disk, in bytes. An agent needs a few hundred thousand, and up to 12 MiB for its history.
const diskSize = 32 << 20

// enterMounts moves the thread into the host's mount namespace, where the data directory is a
// disk of its own. The first call makes the namespace.
func (r *sandbox) enterMounts() error {
	if r.mounts != nil {
		// A thread may not enter a mount namespace while it shares its working directory with other threads.
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(int(r.mounts.Fd()), unix.CLONE_NEWNS)
		}
		return wrap.Error(err, "enter the disk's namespace")
	}
	if err := os.MkdirAll(r.data, 0o700); err != nil {
		return fmt.Errorf("make a disk: %w", err)
	}
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") // what is mounted here must not appear outside
	}
	if err != nil {
		return fmt.Errorf("make the disk's namespace: %w", err)
	}
	options := fmt.Sprintf("size=%d,nr_inodes=1k,mode=0700", diskSize)
	if err := unix.Mount("doyen-testbed", r.data, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return fmt.Errorf("mount a disk: %w", err)
	}
	r.mounts, err = os.Open("/proc/thread-self/ns/mnt")
	return wrap.Error(err, "keep the disk's namespace")
}

// slow sets how much longer each sync takes.
func (r *sandbox) slow(delay time.Duration) error {
	if !r.disk {
		return unavailable("slow the disk", "the cluster was laid out without DiskFaults")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = delay
	for _, s := range r.supervisors {
		s.slow(delay)
	}
	return nil
}

// otherBoot mounts another boot ID over the kernel's own. The calling thread must be in the
// sandbox.
func (r *sandbox) otherBoot(file string) error {
	name := fmt.Sprintf("%08x-0000-4000-8000-%012x\n", os.Getpid(), time.Now().UnixNano()&(1<<48-1))
	if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
		return err
	}
	return wrap.Error(unix.Mount(file, "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, ""), "change the boot")
}

// fill leaves no room on the disk. The calling thread must be in the sandbox.
func (r *sandbox) fill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full != nil {
		return nil
	}
	f, err := newFiller(filepath.Join(r.data, "ballast"))
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	r.full = f
	return nil
}

func (r *sandbox) free() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full == nil {
		return nil
	}
	err := r.full.close()
	r.full = nil
	return err
}

// close ends the sandbox. Nothing may run in it any more.
func (r *sandbox) close() error {
	errs := []error{r.free()}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.supervisors {
		errs = append(errs, s.close())
	}
	if r.mounts != nil {
		errs = append(errs, r.mounts.Close())
	}
	return errors.Join(errs...)
}

// filler is a file without a name that takes all space that becomes free on a disk.
type filler struct {
	file *os.File
	end  func()
}

// refillEvery is the time between two attempts to take space that became free.
const refillEvery = 2 * time.Millisecond

func newFiller(path string) (*filler, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f := &filler{file: file}
	if err := f.fill(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f.end = background(f.refill)
	return f, nil
}

// fill writes until there is no space.
func (f *filler) fill() error {
	page := make([]byte, 4096)
	for written := 0; written <= 2*diskSize; written += len(page) {
		if _, err := f.file.Write(page); errors.Is(err, unix.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return errors.New("there is more space than the disk's size")
}

// refill takes space that becomes free after the first fill, such as the space of a file that has
// been replaced.
func (f *filler) refill(ctx context.Context) {
	for observe.Sleep(ctx, refillEvery) == nil {
		_ = f.fill()
	}
}

func (f *filler) close() error {
	f.end()
	return f.file.Close()
}

// canIntercept tries to intercept a system call. It returns why that is impossible, or nil.
func canIntercept() error {
	probe := &sandbox{disk: true}
	thread, err := newSpawner(func() error { return probe.enter(clock{}) })
	if err != nil {
		return err
	}
	thread.close()
	return probe.close()
}

// tie puts a process in a process group of its own, so that a terminal's Ctrl-C reaches only
// the testbed. It also lets the kernel kill the process when the testbed dies.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
}
