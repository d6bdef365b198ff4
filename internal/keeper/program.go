package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Given is what `doyen agent` decides before it turns into the keeper: all that the keeper executes,
// opens and removes. A life can't change it: it is reached from the network, and the keeper may have
// more rights.
type Given struct {
	LogFormat, LogLevel string
	Program             string   // file of the lives
	Args                []string // of the lives, from the program's name on
	Act                 []string // flags of doyen act
	Record              string   // path
	Lock                string   // path of the data directory's lock
	Pages               string   // directory of the lease pages
}

// ErrOlder is why a keeper of 0.3.0 runs no trial.
var ErrOlder = errors.New("the keeper is of an older version, which can't try a program file: run systemctl restart doyen, once, which hands over")

// Program returns the path by which this program was started under that name. A link in the
// path may point to another version by the next start.
func Program(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	self, unknown := os.Executable()
	switch {
	case unknown != nil && err != nil: // there may be no /proc
		return "", fmt.Errorf("find program file: %w", err)
	case unknown != nil || err == nil && same(found, "/proc/self/exe"):
		return found, nil
	}
	return self, nil
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}
