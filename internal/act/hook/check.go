package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links a path may go through.
const maxLinks = 40

var (
	// named matches an absolute path in a plain command.
	named = regexp.MustCompile(`(?:^|[ =:])(/[^ =:]*)`)
	// plain matches a program and its arguments in which the shell changes nothing.
	plain = regexp.MustCompile(`^[A-Za-z0-9_/.,:@%+-][A-Za-z0-9_/.,:@%+ =-]*$`)
	// builtins are the commands that every shell (POSIX) has built in and with which a plain command can start.
	builtins = strings.Fields(". : alias bg cd command eval exec exit export false fg getopts hash jobs kill pwd read readonly return set shift test times trap true type ulimit umask unalias unset wait echo printf")
)

// ErrShellLine refuses a command of root that is more than a program's absolute path and arguments.
var ErrShellLine = errors.New("root would run a line of the shell, and nobody can check what such a line runs: it depends on more than the files that it names")

// Check refuses a command that is more than an absolute path and plain arguments (ErrShellLine). It also
// refuses a command if a user other than root and the given one could change what is run: such a user would be
// as powerful as root. It checks the program, every absolute path in the arguments, which may be a script, and
// each directory and symbolic link on the way. Each must be owned by root or the given user, and not be
// writable by others. A directory with the sticky bit may be writable if others can't create there what is run.
//
// It can't see what the program itself runs. An empty command runs nothing.
func Check(command string, uid int) error {
	if command == "" {
		return nil
	}
	if !plain.MatchString(command) || !filepath.IsAbs(command) {
		return ErrShellLine
	}
	for _, found := range named.FindAllStringSubmatch(command, -1) {
		var err error
		if strings.HasPrefix(command, found[1]) {
			err = checkRun(found[1], uid)
		} else if err = checkPath(found[1], uid); absent(err) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("check %s: %w", found[1], err)
		}
	}
	return nil
}

// Program returns the program of a command, without the arguments, which may be secret. It is empty if the
// shell would read the first word as more than a program.
func Program(command string) string {
	program, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	if !plain.MatchString(program) || strings.Contains(program, "=") {
		return ""
	}
	return program
}

// Missing returns an error if the program of a command does not exist or is not executable: most likely its
// name is misspelt. It does not check lines that only the shell understands. It starts no process, since a
// running agent may start none.
func Missing(command string) error {
	program := Program(command)
	if !plain.MatchString(command) || program == "" || program == ":" {
		return nil
	}
	if !strings.Contains(program, "/") {
		if _, err := exec.LookPath(program); errors.Is(err, exec.ErrNotFound) && !slices.Contains(builtins, program) {
			return fmt.Errorf("there is no program %s in %s", program, os.Getenv("PATH"))
		}
		return nil
	}
	if !filepath.IsAbs(program) {
		return nil
	}
	switch info, err := os.Stat(program); {
	case os.IsNotExist(err):
		return fmt.Errorf("%s does not exist", program)
	case err != nil:
		return fmt.Errorf("%s can't be run: %w", program, err)
	case info.IsDir():
		return fmt.Errorf("%s is a directory", program)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable: chmod +x %s", program, program)
	}
	return nil
}

// checkRun refuses the path of a program if others can change the file. If the file does not exist, it refuses the
// path if others could create one.
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

// absent reports whether the path could not be followed to its end: most likely no such file exists.
func absent(err error) bool {
	_, is := errors.AsType[*fs.PathError](err)
	return is
}

// CheckAsRoot does what Check does if this process runs as root. Otherwise it accepts every command: a process
// of another user can harm only that user.
func CheckAsRoot(command string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return Check(command, 0)
}

// OwnedError is the error about a file or directory that belongs to a user who must not be able to change it.
type OwnedError struct {
	Path string
	UID  uint32
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("%s belongs to user %d, who could change it: chown root %s", e.Path, e.UID, e.Path)
}

// CheckPathAsRoot refuses, by the rules of Check, a file or directory that a user other than root
// could change or replace. If this process does not run as root, it accepts every path.
func CheckPathAsRoot(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return checkPath(path, 0)
}

// place is a file or directory, found by following a path.
type place struct {
	path string
	info fs.FileInfo
}

// checkPath returns only the error of follow.
func checkPath(path string, uid int) error {
	_, err := follow(path, uid)
	return err
}

// follow walks from the root directory to the file, through symbolic links, as the kernel does: the meaning of
// `..` depends on the links before it. It refuses everything on the way that others can write. It returns the
// file. If the file does not exist, it returns the directory in which the path ends, and a *fs.PathError.
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
		at, rest = filepath.Join(at, rest[0]), rest[1:] // at contains no link, so `..` goes up one directory
	}
}

// openToOthers reports whether others can create files in a directory, even if it has the sticky
// bit.
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

// checkOwner checks the owner and the mode of one file, directory or link.
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
		return nil // a link has no mode, all may write to /dev/null, and the sticky bit protects the files
	case mode.Perm()&0o022 == 0o022:
		return fmt.Errorf("%s can be written by anybody (mode %04o): chmod go-w %s", path, mode.Perm(), path)
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("%s can be written by anybody (mode %04o): chmod o-w %s", path, mode.Perm(), path)
	case mode.Perm()&0o020 != 0 && owner.Gid != 0:
		return fmt.Errorf("%s can be written by group %d (mode %04o): chmod g-w %s", path, owner.Gid, mode.Perm(), path)
	}
	return nil
}
