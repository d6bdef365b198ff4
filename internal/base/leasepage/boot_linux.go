package leasepage

import (
	"fmt"
	"os"
)

// ThisBoot asks the kernel for the name of its present run.
func ThisBoot() (HostBoot, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return HostBoot{}, fmt.Errorf("read the host's boot: %w", err)
	}
	return parseBoot(string(text))
}
