//go:build !linux

package hiccup

import (
	"time"

	"github.com/doyen-election/doyen/agent/boottime"
)

// watchProcessors has one thread, on whichever processor it is put.
func (m *Meter) watchProcessors() {
	p := m.probe("processor", napCPU)
	m.running.Go(func() {
		nap := time.NewTicker(napCPU)
		defer nap.Stop()
		for !m.stopped() {
			m.try(p, boottime.Now().Add(napCPU), func() { <-nap.C })
		}
	})
}
