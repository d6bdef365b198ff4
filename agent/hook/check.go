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

// Check refuses a command if anybody but the given user and root could have changed what it
// runs: a user that can change what root runs is as powerful as root. It checks every program
// that the command names, and every absolute path in any of its words, since a program may run
// what it is given. Each such file, and every directory and symbolic link on the way to it,
// must be owned by root or the given user, and not be writable by others. A directory with the
// sticky bit may be writable: there, only a file's owner can replace it. If a path does not
// exist, Check looks at the directories on the way that exist. Others must not be able to
// create what would be run (a program, a script or an entry of PATH), which the sticky bit
// does not prevent. Files to which output is redirected are not checked. Relative paths depend
// on where the command runs: they are refused where a program or script is named, and wherever
// they start with a dot.
//
// Check can't see what a variable or a substitution will be, what the program itself goes on
// to run, or a file whose name the program gets in another way.
func Check(command string, uid int) error {
	found, err := find(command)
	if err != nil {
		return err
	}
	for _, path := range found.paths {
		if _, err := follow(path, uid); err != nil && !absent(err) {
			return fmt.Errorf("check %s: %w", path, err)
		}
	}
	for _, path := range found.run {
		if err := checkRun(path, uid); err != nil {
			return fmt.Errorf("check %s: %w", path, err)
		}
	}
	return nil
}

// checkRun refuses a path that is run, or in which programs are searched, if others can create
// it or something in it.
func checkRun(path string, uid int) error {
	last, err := follow(path, uid)
	missing := absent(err)
	switch {
	case err != nil && !missing:
		return err
	case missing && openToOthers(last.info):
		return fmt.Errorf("it does not exist, and others could create it in %s (mode %04o): put it where only root can write, such as /usr/local/libexec", last.path, mode(last.info))
	case openToOthers(last.info):
		return fmt.Errorf("others could create a program in it (mode %04o): use a directory that only root can write to", mode(last.info))
	}
	return nil
}

// absent reports whether the error comes from looking at a file: nothing can be run there now.
func absent(err error) bool {
	_, is := errors.AsType[*fs.PathError](err)
	return is
}

// CheckAsRoot is Check if this process is root's. A process of another user can at most harm
// that user.
func CheckAsRoot(command string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return Check(command, 0)
}

// OwnedError is a file or directory that belongs to a user that must not be able to change it.
type OwnedError struct {
	Path string
	UID  uint32
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("%s belongs to user %d, who could change it: chown root %s", e.Path, e.UID, e.Path)
}

// place is a file or directory that a path leads to.
type place struct {
	path string
	info fs.FileInfo
}

// checkPath is follow for a path that must exist.
func checkPath(path string, uid int) error {
	_, err := follow(path, uid)
	return err
}

// follow walks to the file from the root, through symbolic links, as the kernel does: what
// `..` is depends on where a link before it has led. It refuses anything on the way that
// others can write. It returns the file. If that does not exist, it returns the directory in
// which the path ends, and a *fs.PathError.
func follow(path string, uid int) (last place, err error) {
	rest := strings.Split(path, "/")
	at := "/"
	links := 0
	for {
		info, err := os.Lstat(at)
		if err != nil {
			return last, err
		}
		if err := checkOwner(at, info, uid); err != nil {
			return last, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return last, errors.New("too many symbolic links")
			}
			target, err := os.Readlink(at)
			if err != nil {
				return last, err
			}
			rest = append(strings.Split(target, "/"), rest...)
			if at = filepath.Dir(at); filepath.IsAbs(target) {
				at = "/"
			}
			continue
		}
		last = place{at, info}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return last, nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:] // at has no links here, so `..` leaves one directory
	}
}

// openToOthers reports whether others can create files in a directory, with the sticky bit or
// without it.
func openToOthers(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && (info.Mode().Perm()&0o002 != 0 || info.Mode().Perm()&0o020 != 0 && owner.Gid != 0)
}

// mode returns the mode as ls and chmod show it.
func mode(info fs.FileInfo) uint32 {
	bits := uint32(info.Mode().Perm())
	if info.Mode()&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	return bits
}

// checkOwner judges one file, directory or link.
func checkOwner(path string, info fs.FileInfo, uid int) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil // this system does not report owners
	}
	if owner.Uid != 0 && int(owner.Uid) != uid {
		return &OwnedError{Path: path, UID: owner.Uid}
	}
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0, mode&fs.ModeCharDevice != 0, mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil // /dev/null is open to all
	case mode.Perm()&0o022 == 0o022:
		return fmt.Errorf("%s can be written by anybody (mode %04o): chmod go-w %s", path, mode.Perm(), path)
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("%s can be written by anybody (mode %04o): chmod o-w %s", path, mode.Perm(), path)
	case mode.Perm()&0o020 != 0 && owner.Gid != 0:
		return fmt.Errorf("%s can be written by group %d (mode %04o): chmod g-w %s", path, owner.Gid, mode.Perm(), path)
	}
	return nil
}
