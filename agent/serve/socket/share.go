package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Sharing is who may connect to a socket besides the agent's user: the socket's mode and the number
// of its group. With a negative Group, the socket keeps the group with which it was made.
type Sharing struct {
	Mode  fs.FileMode
	Group int
}

// Share gives a socket that Listen has made its mode and group. If the group can't enter the socket's
// directory, Share gives the directory that group too. Errors are of type *Error.
func Share(path string, to Sharing) error {
	if err := to.Possible(path); err != nil {
		return err
	}
	if to.Group >= 0 {
		for _, of := range []string{filepath.Dir(path), path} {
			info, err := os.Stat(of)
			if of != path && err == nil && enters(info, to.Group) {
				continue
			}
			if err == nil && groupOf(info) != to.Group {
				err = os.Lchown(of, -1, to.Group)
			}
			if err != nil {
				return notGiven(of, to.Group, err)
			}
		}
	}
	if err := os.Chmod(path, to.Mode); err != nil {
		return &Error{path, "can't get its mode: " + Cause(err), "choose another path"}
	}
	return nil
}

// Possible reports why this process can't share a socket at the path, as far as that is known before the
// socket exists.
func (to Sharing) Possible(path string) error {
	if to.Group < 0 {
		return nil
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return mayGive(path, to.Group)
	case err != nil:
		return &Error{dir, "can't be used: " + Cause(err), "choose another path"}
	case enters(info, to.Group) && info.Mode()&fs.ModeSetgid != 0 && groupOf(info) == to.Group:
		return nil // with setgid, new files in the directory get its group
	case enters(info, to.Group):
		return mayGive(path, to.Group)
	case !own(info) || info.Mode().Perm()&0o030 != 0o010:
		return &Error{dir, fmt.Sprintf("can't be entered by the group %d (its mode is %04o, its group %d)", to.Group, info.Mode().Perm(), groupOf(info)),
			fmt.Sprintf("run: chgrp %d %s && chmod 2750 %s; or choose another path", to.Group, dir, dir)}
	}
	return mayGive(dir, to.Group)
}

// mayGive reports why this process can't give a file of its own to the group.
func mayGive(path string, group int) error {
	if os.Geteuid() == 0 || group == os.Getegid() {
		return nil
	}
	if groups, err := os.Getgroups(); err == nil && slices.Contains(groups, group) {
		return nil
	}
	return notGiven(path, group, syscall.EPERM)
}

func notGiven(path string, group int, err error) error {
	return &Error{path, fmt.Sprintf("can't be given to the group %d: %s", group, Cause(err)),
		"make the agent's user a member of the group, and let a unit of systemd have SystemCallFilter=@chown; or make the directory with that group and mode 2750"}
}

// enters reports whether members of the group can enter a directory.
func enters(dir fs.FileInfo, group int) bool {
	mode := dir.Mode().Perm()
	return mode&0o001 != 0 || mode&0o010 != 0 && groupOf(dir) == group
}

func groupOf(file fs.FileInfo) int {
	if stat, ok := file.Sys().(*syscall.Stat_t); ok {
		return int(stat.Gid)
	}
	return -1
}

// own reports whether the file belongs to this process's user, or this process runs as root.
func own(file fs.FileInfo) bool {
	stat, ok := file.Sys().(*syscall.Stat_t)
	return ok && (os.Geteuid() == 0 || int(stat.Uid) == os.Geteuid())
}
