package leasepage

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ThisBoot asks the kernel for the name of its present run.
func ThisBoot() (HostBoot, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return HostBoot{}, fmt.Errorf("read the host's boot: %w", err)
	}
	return parseBoot(string(text))
}

// allocate reserves the file's blocks, so that a store through a mapping never needs a block
// that a full disk does not have.
func allocate(f *os.File) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, Size)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS { // ZFS, NFS
		return writeZeros(f)
	}
	return err
}
