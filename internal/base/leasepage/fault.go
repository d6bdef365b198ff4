package leasepage

import (
	"fmt"
	"runtime/debug"
)

// caught is deferred, as caught(debug.SetPanicOnFault(true), &err). It turns a fault into an error:
// memory that is not there, which would end the process otherwise. It undoes SetPanicOnFault.
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
