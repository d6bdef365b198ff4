package alarm

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const clock = unix.CLOCK_BOOTTIME

// Alarm is one alarm, which can be set again and again. Only one goroutine may use it.
type Alarm struct {
	// C gets one value when the alarm rings. After Set, C may still hold a value for the earlier instant: the
	// receiver has to read the clock.
	C <-chan struct{}

	file *os.File
	done chan struct{}
}

// New returns an alarm that is not set. It uses a file descriptor until Close.
func New() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(clock, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create timer: %w", err)
	}
	rings := make(chan struct{}, 1)
	a := &Alarm{C: rings, file: os.NewFile(uintptr(fd), "timerfd"), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		count := make([]byte, 8)
		for {
			if _, err := a.file.Read(count); err != nil {
				return // Close was called
			}
			select {
			case rings <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

// Set makes the alarm ring at this instant, instead of the earlier one. If the instant has passed, it rings at
// once.
func (a *Alarm) Set(instant int64) {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, instant))} // 0 would disarm the timer
	raw, err := a.file.SyscallConn()
	if err != nil {
		return // Close was called
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &at, nil) // no valid argument makes it fail
	})
}

// Close frees the alarm, which then does not ring any more.
func (a *Alarm) Close() {
	a.file.Close()
	<-a.done
}
