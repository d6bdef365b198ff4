package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"
)

// maxLinks bounds how many symbolic links a path may go through.
const maxLinks = 40

// interpreters run a file that they are given: what counts is that file too.
var interpreters = []string{"sh", "bash", "dash", "ash", "ksh", "zsh", "env", "exec", "command", "nice", "nohup", "setsid", "timeout", "sudo", "perl", "ruby", "node"}

// Check refuses a command that another user than the given one, or root, could
// have put something else into: whoever can change what root runs is root. It
// looks at every program that the command names, and at the files named to an
// interpreter, and asks of each, and of every directory and symbolic link on
// the way to it, that it is owned by root or that user and can't be written by
// others; in a directory with the sticky bit, only the owner of what lies there
// can replace it.
//
// It can't see what a variable or a substitution will be, what the program
// itself goes on to run, or a file it is told by other means.
func Check(command string, uid int) error {
	words, err := programs(command)
	if err != nil {
		return err
	}
	for _, w := range words {
		path, found := locate(w)
		if !found {
			continue // a builtin, a function, or nothing there: the shell will say
		}
		if err := checkPath(path, uid); err != nil {
			return fmt.Errorf("check %s: %w", w, err)
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

// programs returns the literal names of all that the command runs.
func programs(command string) ([]string, error) {
	file, err := parse(command)
	if err != nil {
		return nil, err
	}
	var words []string
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			words = append(words, called(call)...)
		}
		return true
	})
	return words, nil
}

// parse reads what a POSIX shell runs; where /bin/sh is bash, what bash does.
func parse(command string) (*syntax.File, error) {
	var first error
	for _, lang := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(command), "")
		if err == nil {
			return file, nil
		}
		if first == nil {
			first = fmt.Errorf("read the command: %w", err)
		}
	}
	return nil, first
}

// called returns the program of a simple command, and, if that is an
// interpreter, its arguments that look like files.
func called(c *syntax.CallExpr) []string {
	if len(c.Args) == 0 {
		return nil
	}
	program := literal(c.Args[0])
	if program == "" {
		return nil
	}
	found := []string{program}
	name := filepath.Base(program)
	if !slices.Contains(interpreters, name) && program != "." && program != "source" && !strings.HasPrefix(name, "python") {
		return found
	}
	for _, arg := range c.Args[1:] {
		if word := literal(arg); strings.Contains(word, "/") && !strings.ContainsAny(word, " =") {
			found = append(found, word)
		}
	}
	return found
}

// literal returns a word without its quotes, empty if it holds more than text.
func literal(w *syntax.Word) string {
	var text strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(p.Value)
		case *syntax.SglQuoted:
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			inner := literal(&syntax.Word{Parts: p.Parts})
			if inner == "" {
				return ""
			}
			text.WriteString(inner)
		default:
			return ""
		}
	}
	return text.String()
}

// locate finds the file that a program's name stands for.
func locate(word string) (string, bool) {
	path, err := exec.LookPath(word)
	if err != nil && strings.Contains(word, "/") {
		path, err = word, nil // a file that is named to an interpreter need not be executable
	}
	if err != nil {
		return "", false
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", false
	}
	_, err = os.Lstat(path)
	return path, err == nil
}

// checkPath walks to the file, through symbolic links, from the root.
func checkPath(path string, uid int) error {
	rest := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
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
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			rest = append(strings.Split(strings.Trim(filepath.Clean(target), "/"), "/"), rest...)
			at = "/"
			continue
		}
		if len(rest) == 0 {
			return nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
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
	case mode&fs.ModeSymlink != 0, mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil
	case mode.Perm()&0o002 != 0:
		return fmt.Errorf("%s can be written by anybody (mode %04o): chmod o-w %s", path, mode.Perm(), path)
	case mode.Perm()&0o020 != 0 && owner.Gid != 0:
		return fmt.Errorf("%s can be written by group %d (mode %04o): chmod g-w %s", path, owner.Gid, mode.Perm(), path)
	}
	return nil
}
