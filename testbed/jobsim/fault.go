package jobsim

import (
	"time"

	"github.com/doyen-election/doyen/internal/jobs"
)

// fault strikes now and then, until the world heals.
func (w *world) fault() {
	w.strike()
	w.after(w.lasts(4*w.period), w.fault)
}

// strike is one fault of the leader.
func (w *world) strike() {
	i := w.leader
	if i < 0 || w.cut || w.Now > w.calm {
		return
	}
	w.judge.counts.Faults++
	kinds := []func(int){w.killRunner, w.killHost, w.cutOff, w.killAgent, w.handOver, w.overtake}
	if w.jumps && w.r.IntN(8) == 0 {
		kinds = []func(int){w.jump}
	}
	kinds[w.r.IntN(len(kinds))](i)
}

// killRunner kills a runner. The guard kills the command, the kernel proves it, and the term is released.
func (w *world) killRunner(i int) {
	w.down(i, w.lasts(3*time.Second))
	w.release(w.lasts(50*time.Millisecond), "its runner is killed")
}

// killHost switches a host off. The next leadership begins only after the lease.
func (w *world) killHost(i int) {
	w.down(i, w.lasts(10*time.Minute))
	w.release(lease+w.lasts(time.Second), "the host is off")
}

// down ends the runner of a host, and starts another one after that time.
func (w *world) down(i int, lasts time.Duration) {
	w.hosts[i].job = nil
	w.after(lasts, func() {
		if err := w.boot(i); err != nil {
			w.judge.fail("%v", err)
		}
	})
}

// cutOff cuts the leader off. Its command is killed before its lease ends, and the command's end is not
// marked. Until then the job goes on, and none of its writes is acknowledged.
func (w *world) cutOff(i int) {
	term := w.term
	w.note("host %d is cut off", i)
	w.cut = true
	w.after(lease/2, func() {
		if w.leader == i && w.term == term {
			w.release(lease/2+w.lasts(time.Second), "its lease ends")
		}
	})
}

// killAgent kills the leader's agent. Its next life leads on in the same term: the answer to a write is lost,
// and the word is read again. One time in four the next life comes too late for that.
func (w *world) killAgent(i int) {
	if w.r.IntN(4) == 0 {
		w.cutOff(i)
		return
	}
	w.note("the agent of host %d is killed", i)
	w.settle()
	w.inTerm(w.lasts(time.Second), func() { w.step(i, jobs.Leads{Term: w.term, Text: w.settled}) })
}

// handOver stops the command, and gives the receipt when its end is marked, or after the time limit.
func (w *world) handOver(i int) {
	w.note("host %d hands over", i)
	w.leaving = true
	w.step(i, jobs.Stopping{})
	if number := w.hosts[i].command; w.leader == i && number != 0 {
		w.inTerm(w.lasts(time.Second), func() {
			if w.hosts[i].command == number {
				w.dead(i)
				w.step(i, jobs.Ended{Result: jobs.Stopped})
			}
		})
	}
	w.inTerm(lease, func() {
		if w.leaving {
			w.release(w.lasts(time.Second), "it takes too long to hand over")
		}
	})
}

// overtake raises the leader's term while its command runs on.
func (w *world) overtake(i int) {
	if w.leaving {
		return
	}
	w.note("the term of host %d rises", i)
	w.settle()
	w.term++
	w.step(i, jobs.Leads{Term: w.term, Text: w.settled})
}

// jump makes the wall clock of a host wrong for a while.
func (w *world) jump(i int) {
	by := w.lasts(3*time.Hour) - 90*time.Minute
	w.note("the clock of host %d jumps by %v", i, by)
	set := func(by time.Duration) {
		w.hosts[i].skew += by
		if w.leader == i && by.Abs() >= time.Minute {
			w.step(i, jobs.Jumped{})
		}
	}
	set(by)
	w.after(min(w.lasts(20*time.Minute), max(w.calm-w.Now, 0)), func() { set(-by) })
}
