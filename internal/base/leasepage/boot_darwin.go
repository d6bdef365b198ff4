package leasepage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ThisBoot returns the kernel's name for the present boot of the host.
func ThisBoot() (HostBoot, error) {
	text, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return HostBoot{}, fmt.Errorf("read the host's boot: %w", err)
	}
	return parseBoot(text)
}
