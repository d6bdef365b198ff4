//go:build !linux

package hiccup

import "github.com/doyen-election/doyen/testbed/observe"

const maxProcessors = 1

// watchProcessors watches with one thread, on whichever processor it runs.
func (m *Meter) watchProcessors() {
	p := m.probe("processor", napCPU)
	m.running.Go(func() {
		for observe.Sleep(m.ctx, napCPU) == nil {
			m.tried(p)
		}
	})
}
