package leasepage

import (
	"fmt"
	"os"
)

// ThisBoot returns the kernel's name for the present boot of the host.
func ThisBoot() (HostBoot, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return HostBoot{}, fmt.Errorf("read the host's boot: %w", err)
	}
	return parseBoot(string(text))
}
