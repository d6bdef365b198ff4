package hosts

import (
	"errors"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
)

// supervisor answers the system calls of the processes under one filter: it delays syncs, and
// answers clock readings.
type supervisor struct {
	calls *os.File
	clock clock
	ahead election.Instant // how far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC
	done  chan struct{}

	mu      sync.Mutex
	delay   time.Duration
	waiting map[uint64]waiting
	closed  bool
}

type waiting struct {
	since time.Time
	timer *time.Timer
}

// maxWaiting bounds how many syncs wait; further ones go through at once. Syncs of killed
// processes stay until the delay changes.
const maxWaiting = 4096

func newSupervisor(calls *os.File, c clock, delay time.Duration) *supervisor {
	s := &supervisor{calls: calls, clock: c, delay: delay, waiting: map[uint64]waiting{}, done: make(chan struct{})}
	go s.run()
	return s
}

// run answers the system calls of the host's processes, until the file is closed or all of them have ended.
func (s *supervisor) run() {
	defer close(s.done)
	// This reading can't be in newSupervisor: on that thread, it might be intercepted and wait for this loop.
	var mono unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) // fails only for an unknown clock
	s.ahead = boottime.Now() - election.Instant(mono.Nano())
	for {
		call, err := receive(s.calls)
		switch {
		case errors.Is(err, unix.ENOENT): // the process was killed meanwhile
		case err != nil:
			return
		case call.nr == unix.SYS_CLOCK_GETTIME:
			respond(s.calls, s.time(call))
		default:
			s.hold(call.id)
		}
	}
}

// time writes the host's time where the caller wants it. CLOCK_BOOTTIME and CLOCK_MONOTONIC run at one
// rate, as on a real host. If only the first ran fast, a process would take this for a suspend.
func (s *supervisor) time(call notification) response {
	shown := s.clock.at(boottime.Now())
	switch call.args[0] {
	case unix.CLOCK_MONOTONIC:
		shown -= s.ahead
	case unix.CLOCK_REALTIME:
		shown = election.Instant(time.Now().Add(s.clock.wall).UnixNano())
	}
	written := unix.NsecToTimespec(int64(shown))
	local := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&written))}}
	size := int(unsafe.Sizeof(written))
	local[0].SetLen(size)
	remote := []unix.RemoteIovec{{Base: uintptr(call.args[1]), Len: size}}
	if _, err := unix.ProcessVMWritev(int(call.pid), local, remote, 0); err != nil {
		return response{id: call.id, errno: -int32(unix.EFAULT)}
	}
	return response{id: call.id}
}

// hold lets a sync through after the delay.
func (s *supervisor) hold(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delay == 0 || s.closed || len(s.waiting) >= maxWaiting {
		s.pass(id)
		return
	}
	s.waiting[id] = waiting{time.Now(), time.AfterFunc(s.delay, func() { s.release(id) })}
}

func (s *supervisor) release(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waits := s.waiting[id]; waits {
		delete(s.waiting, id)
		s.pass(id)
	}
}

func (s *supervisor) pass(id uint64) {
	respond(s.calls, response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// slow changes the delay, even for syncs that already wait.
func (s *supervisor) slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
	for _, w := range s.waiting {
		w.timer.Reset(max(0, delay-time.Since(w.since)))
	}
}

// close lets every waiting call through and ends the supervisor. Later calls fail.
func (s *supervisor) close() error {
	s.mu.Lock()
	s.closed = true
	for id, w := range s.waiting {
		w.timer.Stop()
		s.pass(id)
	}
	clear(s.waiting)
	s.mu.Unlock()
	err := s.calls.Close()
	<-s.done
	return err
}
