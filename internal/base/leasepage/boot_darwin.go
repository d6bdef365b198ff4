package leasepage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ThisBoot asks the kernel for the name of its present run.
func ThisBoot() (HostBoot, error) {
	text, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return HostBoot{}, fmt.Errorf("read the host's boot: %w", err)
	}
	return parseBoot(text)
}
