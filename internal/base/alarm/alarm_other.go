//go:build !linux

package alarm

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	clock = unix.CLOCK_MONOTONIC
	// look bounds how late an alarm can ring after a suspend.
	look = 100 * time.Millisecond
)

// Alarm is one alarm, which can be set again and again.
type Alarm struct {
	// C gets one value when the alarm rings. After Set, C may still hold a value for the earlier instant: the
	// receiver has to read the clock.
	C <-chan struct{}

	rings chan struct{}
	mu    sync.Mutex
	at    int64
	timer *time.Timer
}

// New returns an alarm that is not set.
func New() (*Alarm, error) {
	rings := make(chan struct{}, 1)
	return &Alarm{C: rings, rings: rings}, nil
}

// Set makes the alarm ring at this instant, instead of the earlier one. If the instant has passed, it rings at
// once.
func (a *Alarm) Set(instant int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = instant
	a.wait()
}

func (a *Alarm) wait() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.timer = time.AfterFunc(min(look, Until(a.at)), a.ring)
}

func (a *Alarm) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer == nil {
		return
	}
	if Until(a.at) > 0 {
		a.wait()
		return
	}
	select {
	case a.rings <- struct{}{}:
	default:
	}
}

// Close frees the alarm, which then does not ring any more.
func (a *Alarm) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
