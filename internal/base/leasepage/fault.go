package leasepage

import (
	"fmt"
	"runtime/debug"
)

// caught turns a memory fault, which would end the process, into an error, and restores the setting of
// SetPanicOnFault. Use: defer caught(debug.SetPanicOnFault(true), &err).
func caught(before bool, err *error) {
	debug.SetPanicOnFault(before)
	switch p := recover().(type) {
	case nil:
	case interface {
		error
		Addr() uintptr
	}:
		*err = fmt.Errorf("memory at %#x is gone: the file has shrunk, or its disk is full", p.Addr())
	default:
		panic(p)
	}
}
