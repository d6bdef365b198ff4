package netns

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm rings at an instant of CLOCK_MONOTONIC. The runtime's own timers are up
// to a millisecond late when nothing else happens; this one is a file that the
// kernel makes readable, some 50 µs late.
type alarm struct{ file *os.File }

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make timer: %w", err)
	}
	return &alarm{os.NewFile(uintptr(fd), "timerfd")}, nil
}

// set makes it ring at that instant, and at no other; one that has passed rings
// at once.
func (a *alarm) set(at time.Duration) error {
	raw, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, int64(at)))}
	controlErr := raw.Control(func(fd uintptr) {
		err = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil)
	})
	if controlErr != nil {
		return controlErr
	}
	return err
}

// wait blocks until it rings or is closed.
func (a *alarm) wait() error {
	var count [8]byte
	_, err := a.file.Read(count[:])
	return err
}

func (a *alarm) close() error { return a.file.Close() }

// monotonic reads the clock of alarms.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // fails only for an unknown clock
	return time.Duration(ts.Nano())
}
