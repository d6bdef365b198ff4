package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/doyen-election/doyen/internal/base/leasepage"
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
