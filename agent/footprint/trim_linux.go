package footprint

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Trim returns to the system what only the start needed: free heap, and the pages of the
// program file. The start touches nearly all of these once. They are unchanged, so the kernel
// reads them from the page cache again when they are needed.
//
// It skips a mapping with changed pages, even if the mapping is read-only: in a
// position-independent program the loader has put addresses there, which would be lost.
func Trim() error {
	shrink()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("trim footprint: %w", err)
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("trim footprint: %w", err)
	}
	defer maps.Close()
	var from, to uintptr // of the mapping that the lines are about; if there is none, to is 0
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		line := lines.Text()
		var start, end uintptr
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %4s", &start, &end, &mode); n == 3 {
			from, to = start, end
			if mode[1] == 'w' || !strings.HasSuffix(line, " "+program) {
				to = 0
			}
			continue
		}
		changed, said := strings.CutPrefix(line, "Anonymous:")
		if !said || to == 0 || strings.TrimSpace(changed) != "0 kB" {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("trim footprint: %w", errno)
		}
	}
	return lines.Err()
}
