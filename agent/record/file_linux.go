package record

import (
	"fmt"
	"os"
	"strings"

	"github.com/doyen-election/doyen/internal/base/wrap"
	"golang.org/x/sys/unix"
)

const supported = true

// allocate reserves that much memory for a file, without changing its length. If the tmpfs becomes
// full later, the record can still grow that far.
func allocate(f *os.File, size int64) error {
	return wrap.Error(unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size), "allocate %d KiB of memory", size>>10)
}

// offsets returns how far the clocks of this time namespace differ from the host's, see
// time_namespaces(7). It is empty if they do not differ.
func offsets() (string, error) {
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(text)) // one line for each clock: its name, seconds, nanoseconds
	for i, f := range fields {
		if i%3 != 0 && f != "0" {
			return strings.Join(fields, " "), nil
		}
	}
	return "", err
}

// InMemory returns an error if the files of a directory would outlive the kernel.
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
