//go:build !linux

package hosts

import (
	"errors"
	"time"

	"github.com/doyen-election/doyen/testbed/netns"
)

// room is where a host's processes run: here, like any other.
type room struct {
	data  string
	space *netns.Host
	disk  bool
}

const onlyLinux = "only on Linux"

func (r *room) plain() bool              { return true }
func (r *room) enter(clock) error        { return nil }
func (r *room) slow(time.Duration) error { return unavailable("slow the disk", onlyLinux) }
func (r *room) fill() error              { return unavailable("fill the disk", onlyLinux) }
func (r *room) free() error              { return nil }
func (r *room) close() error             { return nil }

// canIntercept says why system calls can't be intercepted.
func canIntercept() error { return errors.New(onlyLinux) }
