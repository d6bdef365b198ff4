//go:build !linux

package proof

import (
	"net"

	"github.com/doyen-election/doyen/agent/record"
)

// Process is empty: this system can prove nothing about a process.
type Process struct{}

// Of returns ErrNone.
func Of(*net.UnixConn, int64, ...uint64) (*Process, error) { return nil, ErrNone }

// Identify returns zero.
func Identify(*net.UnixConn, int64, bool) record.Program { return record.Program{} }

// Recorded returns ErrNone.
func Recorded(record.Program) (*Process, error) { return nil, ErrNone }

// Held returns all sockets, since this system can't show which are still open.
func Held(sockets []uint64) []uint64 { return sockets }

// Gone is never closed.
func (p *Process) Gone() <-chan struct{} { return nil }

// Alone is never true.
func (p *Process) Alone() bool { return false }

// Close does nothing.
func (p *Process) Close() {}
