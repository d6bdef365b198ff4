//go:build !linux

package hosts

import "syscall"

// burden takes processor time from a host's processes.
type burden struct{ duty *duty }

func sweepGroups() {}

func newBurden(string) *burden { return &burden{} }

func (b *burden) starve(on bool, _ *spawner, _ []int, signal func(syscall.Signal)) error {
	switch {
	case on && b.duty == nil:
		b.duty = newDuty(signal)
	case !on:
		b.lift()
	}
	return nil
}

func (b *burden) limit(int64, []int) error         { return unavailable("limit memory", onlyLinux) }
func (b *burden) crowd(int, *spawner, []int) error { return unavailable("crowd", onlyLinux) }
func (b *burden) admit(int) error                  { return nil }

func (b *burden) lift() {
	if b.duty != nil {
		b.duty.close()
		b.duty = nil
	}
}

func (b *burden) close() error {
	b.lift()
	return nil
}
