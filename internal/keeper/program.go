package keeper

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program returns the path by which this program was started under that name. A link in the
// path may point to another version by the next start.
func Program(name string) (string, error) {
	self, err := os.Executable()
	if err != nil { // there may be no /proc
		if self, err = exec.LookPath(name); err == nil {
			self, err = filepath.Abs(self)
		}
		if err != nil {
			return "", fmt.Errorf("find program file: %w", err)
		}
	}
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return self, nil
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return self, nil
	}
	if found, err = filepath.Abs(found); err != nil {
		return self, nil
	}
	if info, err := os.Stat(found); err != nil || !os.SameFile(info, own) {
		return self, nil
	}
	return found, nil
}
