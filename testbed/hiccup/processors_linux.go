package hiccup

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

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
	runtime.LockOSThread() // it is never unlocked, so the thread ends with the goroutine
	var only unix.CPUSet
	only.Set(cpu)
	if unix.SchedSetaffinity(0, &only) != nil {
		m.giveUp(p)
		return // the processor was taken from this process meanwhile
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // the priority of this thread; it fails for users other than root
	nap := unix.NsecToTimespec(int64(napCPU))
	for m.ctx.Err() == nil {
		_ = unix.Nanosleep(&nap, nil)
		m.tried(p)
	}
}
