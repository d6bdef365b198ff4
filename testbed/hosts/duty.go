package hosts

import (
	"syscall"
	"time"
)

const (
	// A starved host's processes run for a tenth of each period, in one piece, as the kernel lets
	// a control group run that has used up its share.
	starvePeriod = 100 * time.Millisecond
	starveShare  = 10 * time.Millisecond
)

// duty lets processes run for a share of each period and stops them for the rest. It needs no
// rights, and other hosts do not feel it.
type duty struct {
	stop    chan struct{}
	stopped chan struct{}
}

// newDuty starts a duty. It calls signal to send a signal to each process.
func newDuty(signal func(syscall.Signal)) *duty {
	d := &duty{stop: make(chan struct{}), stopped: make(chan struct{})}
	go d.run(signal)
	return d
}

func (d *duty) run(signal func(syscall.Signal)) {
	defer close(d.stopped)
	defer signal(syscall.SIGCONT)
	next := time.NewTimer(starveShare)
	defer next.Stop()
	for runs := true; ; runs = !runs {
		select {
		case <-d.stop:
			return
		case <-next.C:
		}
		if runs {
			signal(syscall.SIGSTOP)
			next.Reset(starvePeriod - starveShare)
		} else {
			signal(syscall.SIGCONT)
			next.Reset(starveShare)
		}
	}
}

// close ends the duty and leaves the processes running.
func (d *duty) close() {
	close(d.stop)
	<-d.stopped
}
