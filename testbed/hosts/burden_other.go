//go:build !linux

package hosts

// burden is of Linux only.
type burden struct{}

func sweepGroups()             {}
func newBurden(string) *burden { return &burden{} }

func (b *burden) limit(int64, []int) error         { return unavailable("limit memory", onlyLinux) }
func (b *burden) crowd(int, *spawner, []int) error { return unavailable("crowd", onlyLinux) }
func (b *burden) admit(int) error                  { return nil }
func (b *burden) close() error                     { return nil }
