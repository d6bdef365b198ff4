package footprint

import (
	"bufio"
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Trim returns to the system the memory that only the start needed: free heap, and the pages of the program
// file. The start touches nearly all of these pages.
func Trim() error {
	shrink()
	return Drop()
}

// Drop returns the pages of the program file to the system. They are unchanged, so they are read again from the
// page cache when they are needed.
//
// It skips a mapping with changed pages, even if the mapping is read-only: in a position-independent program,
// the loader has written addresses there, which would be lost.
func Drop() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("trim footprint: %w", err)
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("trim footprint: %w", err)
	}
	defer maps.Close()
	var from, to uintptr // the bounds of the mapping that the present lines describe; to is 0 if Drop skips it
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		line := lines.Bytes()
		changed, last := bytes.CutPrefix(line, []byte("Anonymous:"))
		if len(line) > 0 && (line[0] < 'A' || line[0] > 'Z') { // an address: the line starts the next mapping
			var mode string
			if n, _ := fmt.Sscanf(string(line), "%x-%x %4s", &from, &to, &mode); n < 3 || mode[1] == 'w' || !bytes.HasSuffix(line, []byte(" "+program)) {
				to = 0
			}
		}
		if !last || to == 0 || string(bytes.TrimSpace(changed)) != "0 kB" {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("trim footprint: %w", errno)
		}
	}
	return lines.Err()
}
