//go:build !linux

package proof

import "net"

// Process is empty: this system can prove nothing about it.
type Process struct{}

// Of returns ErrNone.
func Of(*net.UnixConn, int64) (*Process, error) { return nil, ErrNone }

// Gone is never closed.
func (p *Process) Gone() <-chan struct{} { return nil }

// Alone is never true.
func (p *Process) Alone() bool { return false }

// Close does nothing.
func (p *Process) Close() {}
