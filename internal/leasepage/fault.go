package leasepage

import (
	"fmt"
	"runtime/debug"
)

// faultError is memory that is not there: the file beneath the mapping has
// shrunk, or there is no room on its disk.
type faultError struct{ address uintptr }

func (e faultError) Error() string {
	return fmt.Sprintf("memory at %#x is gone: the file has shrunk, or its disk is full", e.address)
}

// guard turns a fault of this goroutine into a panic, which caught recovers. Otherwise the
// fault would end the process.
func guard() (before bool) { return debug.SetPanicOnFault(true) }

// caught is deferred: it undoes guard, and turns a fault, and nothing else,
// into an error.
func caught(before bool, err *error) {
	debug.SetPanicOnFault(before)
	switch p := recover().(type) {
	case nil:
	case interface {
		error
		Addr() uintptr
	}:
		*err = faultError{p.Addr()}
	default:
		panic(p)
	}
}
