//go:build !linux

package hiccup

import "time"

const maxProcessors = 1

// watchProcessors watches with one thread, on whichever processor it runs.
func (m *Meter) watchProcessors() {
	p := m.probe("processor", napCPU)
	m.running.Go(func() {
		nap := time.NewTicker(napCPU)
		defer nap.Stop()
		for !m.stopped() {
			<-nap.C
			m.tried(p)
		}
	})
}
