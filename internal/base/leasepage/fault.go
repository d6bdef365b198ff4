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

// Guard makes a fault of this goroutine a panic, for Caught to take. The system
// would end the process otherwise.
func Guard() (before bool) { return debug.SetPanicOnFault(true) }

// Caught is deferred: it undoes Guard, and turns a fault, and nothing else,
// into an error.
func Caught(before bool, err *error) {
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
