//go:build !linux

package record

import "os"

const (
	populate  = 0
	supported = false
)

func allocate(f *os.File) error { return f.Truncate(size) }

// inMemory refuses: on this system no file system is known to die with the kernel.
func inMemory(dir string) error { return memoryError(dir) }
