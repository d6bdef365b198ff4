package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Given is what the keeper executes, opens and removes. `doyen agent` passes it on when it turns into the
// keeper. A life can't change it: a life can be attacked from the network, and the keeper may have more rights.
type Given struct {
	LogFormat, LogLevel string
	Program             string   // program file of the lives
	Args                []string // arguments of the lives, the program's name first
	Act                 []string // flags of doyen act
	Record              string   // path of the record
	Lock                string   // path of the data directory's lock
	Pages               string   // directory of the lease pages
}

// ErrOlder means that a keeper of 0.3.0 runs no trial.
var ErrOlder = errors.New("the keeper is of an older version, which can't try a program file: run systemctl restart doyen, once, which hands over")

// Program returns the path by which this program was started under that name. It keeps links in the path: a
// link may lead to another version at the next start.
func Program(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	self, unknown := os.Executable()
	switch {
	case unknown != nil && err != nil: // this system may have no /proc
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
