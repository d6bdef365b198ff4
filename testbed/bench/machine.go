package bench

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Machine is where a run was made. What can't be found out is left empty.
type Machine struct {
	OS        string  `json:"os"`
	Arch      string  `json:"arch"`
	Kernel    string  `json:"kernel"`
	CPU       string  `json:"cpu"`
	CPUs      int     `json:"cpus"`
	MemoryMiB uint64  `json:"memory_mib"`
	Load1     float64 `json:"load1"` // before the run
	Go        string  `json:"go"`
}

func machine() Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	m.look()
	return m
}
