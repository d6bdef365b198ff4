package transport

import (
	"math/rand/v2"
	"time"
)

const (
	// redialMin and redialMax bound the time from the start of one dial to the start of the
	// next, as long as dials fail.
	redialMin = 50 * time.Millisecond
	redialMax = 250 * time.Millisecond
	// redialSlow bounds the random pause after an attempt that took too long, which lasts
	// half of it or more. It doubles with each in a row, up to redialSlowest.
	redialSlow    = 250 * time.Millisecond
	redialSlowest = 2 * time.Second
	// redialOften is how many attempts in a row a peer may end by hanging up, before the
	// pause between them becomes redialRefused.
	redialOften = 8
	// redialRefused is the pause after the peer was reached and one side refused.
	redialRefused = time.Second
	// promptly is the least time between two dials at once after the end of a session.
	promptly = time.Second
)

// failed takes the outcome of an attempt that failed.
func (l *link) failed(o outcome) {
	refused := l.report(o.err)
	l.again(l.pause(o, refused))
	if l.dials {
		l.t.count.dialsFailed.Add(1)
	}
	// On the side that dials, a failed redial means that the session is lost, as a refusal
	// does. The other side relies on its probe, since the dialler may try again. While a
	// session exists, a failed attempt at another one does not end it.
	if l.current() == nil && (refused || l.dials) {
		l.lose(l.cause)
	}
}

// pause returns how long to wait after the attempt that failed. A peer that can't be
// reached, or whose process is gone, is dialled often: a link that heals, or a process that
// starts, is found at once. A peer that is there but too busy gets time. That time is
// random, so that not all its peers come again together.
func (l *link) pause(o outcome, refused bool) time.Duration {
	if o.tooSlow {
		pause := min(redialSlow<<min(l.timeouts, 8), redialSlowest)
		l.timeouts++
		return pause/2 + rand.N(pause/2)
	}
	if o.hungUp {
		l.turned++
	}
	if refused || l.turned > redialOften {
		return redialRefused/2 + rand.N(redialRefused)
	}
	pause := max(0, l.interval-time.Since(l.began))
	l.interval = min(l.interval*3/2, redialMax)
	return pause
}

// rouse dials a peer that has reported itself: at once, but no more often than other peers. If
// the former life's connection still looks open, its end has not been read yet; then redial is
// not delayed.
func (l *link) rouse() {
	if time.Since(l.roused) < redialMin {
		return
	}
	l.roused, l.prompt = time.Now(), time.Time{}
	if l.current() == nil && !(l.busy && time.Since(l.began) < redialMin) {
		l.afresh()
	}
}

// redial dials at once, but not in a tight loop if sessions break straight away.
func (l *link) redial() {
	if time.Since(l.prompt) < promptly {
		l.again(l.interval)
		l.interval = min(l.interval*3/2, redialMax)
		return
	}
	l.prompt, l.interval = time.Now(), redialMin
	l.again(0)
}
