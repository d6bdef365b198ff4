package footprint

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// Trim gives back what only the start needed: free heap, and the pages of the
// program file, nearly all of which the start touches once. They are clean and
// come back from the page cache when they are needed again.
func Trim() error {
	debug.FreeOSMemory()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("trim footprint: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("trim footprint: %w", err)
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var from, to uintptr
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %4s", &from, &to, &mode); err != nil {
			return fmt.Errorf("trim footprint: read mapping %q: %w", lines.Text(), err)
		}
		if mode[1] == 'w' || !strings.HasSuffix(lines.Text(), " "+program) {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("trim footprint: %w", errno)
		}
	}
	return lines.Err()
}
