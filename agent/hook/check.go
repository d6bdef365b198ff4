package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks bounds how many symbolic links a path may go through.
const maxLinks = 40

// Check refuses a command that another user than the given one, or root, could
// have put something else into: whoever can change what root runs is root. It
// looks at every program that the command names, and at every absolute path in
// any of its words that is there: a program may run what it is given. Of each,
// and of every directory and symbolic link on the way to it, it asks that it is
// owned by root or that user and can't be written by others; in a directory with
// the sticky bit, only the owner of what lies there can replace it. Files that
// only output is redirected to are not looked at. Paths that are not absolute are
// refused where a program or script is named, and wherever they begin with a dot:
// what they stand for depends on where the command is then.
//
// It can't see what a variable or a substitution will be, what the program
// itself goes on to run, or a file it is told by other means.
func Check(command string, uid int) error {
	paths, err := named(command)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); err != nil {
			continue // nothing there: it is looked for again before each run
		}
		if err := checkPath(path, uid); err != nil {
			return fmt.Errorf("check %s: %w", path, err)
		}
	}
	return nil
}

// CheckAsRoot is Check for this process, if it is root's; anybody else can at
// most harm itself.
func CheckAsRoot(command string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return Check(command, 0)
}

// checkPath walks to the file from the root, through symbolic links, as the
// kernel does: what `..` is depends on where a link before it has led.
func checkPath(path string, uid int) error {
	rest := strings.Split(path, "/")
	at := "/"
	links := 0
	for {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if err := checkOwner(at, info, uid); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return errors.New("too many symbolic links")
			}
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			rest = append(strings.Split(target, "/"), rest...)
			if at = filepath.Dir(at); filepath.IsAbs(target) {
				at = "/"
			}
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:] // of a path without links, which `..` leaves by one
	}
}

// checkOwner judges one file, directory or link.
func checkOwner(path string, info fs.FileInfo, uid int) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil // a system that does not tell
	}
	if owner.Uid != 0 && int(owner.Uid) != uid {
		return fmt.Errorf("%s belongs to user %d, who could change it: chown root %s", path, owner.Uid, path)
	}
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0, mode&fs.ModeCharDevice != 0, mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil // /dev/null is open to all
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("%s can be written by anybody (mode %04o): chmod o-w %s", path, mode.Perm(), path)
	case mode.Perm()&0o020 != 0 && owner.Gid != 0:
		return fmt.Errorf("%s can be written by group %d (mode %04o): chmod g-w %s", path, owner.Gid, mode.Perm(), path)
	}
	return nil
}
