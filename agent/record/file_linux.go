package record

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const supported = true

// allocate has the system keep that much memory for the file, which stays as long as it is. So a
// tmpfs that is full from then on does not end the record.
func allocate(f *os.File, size int64) error {
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size); err != nil {
		return fmt.Errorf("allocate %d KiB of memory: %w", size>>10, err)
	}
	return nil
}

// InMemory returns why the files of a directory would not die with the kernel.
func InMemory(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if kind := uint32(fs.Type); kind != unix.TMPFS_MAGIC && kind != unix.RAMFS_MAGIC {
		return fmt.Errorf("%s is not in memory (tmpfs)", dir)
	}
	return nil
}
