package leasepage

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ThisBoot asks the kernel for the name of its present run.
func ThisBoot() (HostBoot, error) {
	text, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return HostBoot{}, fmt.Errorf("read the host's boot: %w", err)
	}
	return parseBoot(text)
}

// allocate reserves the file's blocks by writing them, for lack of a better way on this
// system.
func allocate(f *os.File) error { return writeZeros(f) }
