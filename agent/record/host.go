package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"github.com/doyen-election/doyen/internal/leasepage"
)

// host is what a record is bound to. Another run of the kernel, or another time namespace, has
// another clock.
type host struct {
	boot   leasepage.HostBoot
	timeNS uint64
}

func thisHost() (host, error) {
	boot, err := leasepage.ThisBoot()
	if err != nil {
		return host{}, err
	}
	h := host{boot: boot}
	info, err := os.Stat("/proc/self/ns/time")
	switch stat, ok := statOf(info); {
	case errors.Is(err, fs.ErrNotExist): // a kernel without time namespaces
	case err != nil:
		return host{}, fmt.Errorf("read the time namespace: %w", err)
	case ok:
		h.timeNS = stat.Ino
	}
	return h, nil
}

func statOf(info os.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}

// started returns when a process started, in the kernel's ticks since its boot; 0: there is no
// such process. Start and process ID together name one process of this boot.
func started(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	const field = 22 - 3 // field 3 is the first after the name, which may hold anything but ends with the last ")"
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= field {
		return 0
	}
	at, _ := strconv.ParseUint(string(fields[field]), 10, 64)
	return at
}
