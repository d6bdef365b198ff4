package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// maxLinks bounds how many symbolic links a path may go through.
const maxLinks = 40

var (
	// redirected is where a line of the shell writes its output to.
	redirected = regexp.MustCompile(`>+&?\s*\S+`)
	// named is an absolute path in a line.
	named = regexp.MustCompile(`(?:^|[\s;|&<>()'"=:])(/[^\s;|&<>()'"$\x60*?=:]*)`)
	// plain is a program and its arguments, of which the shell changes nothing.
	plain = regexp.MustCompile(`^[A-Za-z0-9_/.,:@%+-][A-Za-z0-9_/.,:@%+ =-]*$`)
)

// Check refuses a command if anybody but the given user and root could have changed what it runs: a
// user that can change what root runs is as powerful as root. The program, every absolute path among
// its arguments, which may be a script, and every directory and symbolic link on the way to them
// must be owned by root or the given user, and not be writable by others. A directory with the
// sticky bit may be writable, but others must not be able to create what is run.
//
// In a line that only the shell understands (see ShellLine), Check looks at the absolute paths that
// it can see, without those to which output is redirected. It can't see what a variable will be, nor
// what the program itself goes on to run.
func Check(command string, uid int) error {
	for _, found := range named.FindAllStringSubmatch(redirected.ReplaceAllString(command, " "), -1) {
		check := checkRun
		if path := found[1]; !strings.HasPrefix(command, path) {
			check = func(path string, uid int) error {
				if err := checkPath(path, uid); !absent(err) {
					return err
				}
				return nil
			}
		}
		if err := check(found[1], uid); err != nil {
			return fmt.Errorf("check %s: %w", found[1], err)
		}
	}
	return nil
}

// ShellLine reports whether a command is more than the absolute path of a program and its arguments:
// then what it runs can't be checked, and root should not run it.
func ShellLine(command string) bool {
	return command != "" && !(plain.MatchString(command) && filepath.IsAbs(command))
}

// Program returns the program of a command, without what it is given, which may be secret. It is
// empty if that is not plain.
func Program(command string) string {
	program, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	if !plain.MatchString(program) || strings.Contains(program, "=") {
		return ""
	}
	return program
}

// Missing returns an error if the program of a command does not exist, or is not executable: most
// probably its name is misspelt. It does not look into lines that only the shell understands.
func Missing(command string) error {
	program := Program(command)
	if !plain.MatchString(command) || program == "" || program == ":" {
		return nil
	}
	if !strings.Contains(program, "/") {
		if err := exec.Command("/bin/sh", "-c", "command -v \"$1\"", "sh", program).Run(); err != nil {
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

// CheckPathAsRoot refuses, by the rules of Check, a file or directory that another user than root
// could change or replace. In a process that is not root's it accepts all paths: its files are its
// own matter.
func CheckPathAsRoot(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return checkPath(path, 0)
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
