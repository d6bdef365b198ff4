package hiccup

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// maxProcessors is how many processors are watched at most.
const maxProcessors = 64

// watchProcessors has a thread on each processor, because one processor may stand still while
// the others run.
func (m *Meter) watchProcessors() {
	var mine unix.CPUSet
	if unix.SchedGetaffinity(0, &mine) != nil {
		return
	}
	for cpu := range len(mine) * 64 {
		if !mine.IsSet(cpu) || len(m.probes) == maxProcessors {
			continue
		}
		p := m.probe(fmt.Sprintf("processor %d", cpu), napCPU)
		m.running.Go(func() { m.watchProcessor(cpu, p) })
	}
}

func (m *Meter) watchProcessor(cpu int, p *probe) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	var only unix.CPUSet
	only.Set(cpu)
	if unix.SchedSetaffinity(0, &only) != nil {
		m.giveUp(p)
		return // the processor was taken from this process meanwhile
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // of this thread; only root may
	nap := unix.NsecToTimespec(int64(napCPU))
	for m.ctx.Err() == nil {
		_ = unix.Nanosleep(&nap, nil)
		m.tried(p)
	}
}
