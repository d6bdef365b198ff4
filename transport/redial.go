package transport

import (
	"math/rand/v2"
	"time"
)

const (
	// redialMin and redialMax bound the time from the start of one dial to that
	// of the next, as long as they fail.
	redialMin = 50 * time.Millisecond
	redialMax = 250 * time.Millisecond
	// redialSlow is that time, or half of it, from the end of an attempt that
	// took too long; it doubles with each, up to redialSlowest.
	redialSlow    = 250 * time.Millisecond
	redialSlowest = 2 * time.Second
	// redialOften is how many attempts a peer that answers, and hangs up, may
	// end so before it gets redialRefused between them.
	redialOften = 8
	// redialRefused is that time when the peer was reached and one side would not.
	redialRefused = time.Second
	// promptly is how often the end of a session may be answered by a dial at once.
	promptly = time.Second
)

// failed takes the outcome of an attempt that failed.
func (l *link) failed(o outcome) {
	refused := l.report(o.err)
	l.again(l.pause(o, refused))
	if l.dials {
		l.t.count.dialsFailed.Add(1)
	}
	// A failed redial counts like a refused one. The side that does not dial relies on its
	// probe, since the dialler may try again. An attempt at another session does not end
	// one that still exists.
	if l.current() == nil && (refused || l.dials) {
		l.lose(l.cause)
	}
}

// pause returns how long to wait after the attempt that failed. A peer that
// can't be reached, or whose process is gone, is looked for often: a link that
// heals, and a process that starts, are found at once. One that is there and too
// busy gets time, of a random length so that not all come again together.
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

// wokenUp has the loop dial a peer that has reported itself: a later life (see wake).
func (l *link) wokenUp() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// rouse dials at once a peer that has reported itself, at most as often as any other. Where the
// former life's connection still looks open, its end has not been read yet: the dial that
// follows is not delayed.
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
