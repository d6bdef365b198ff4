package hook

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	// shells run a line after -c, or a script.
	shells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox"}
	// interpreters run a script.
	interpreters = []string{"perl", "ruby", "node", "php", "lua", "tclsh", ".", "source"}
	// wrappers run another program that they are given, somewhere among their words.
	wrappers = []string{"env", "exec", "command", "builtin", "nice", "ionice", "nohup", "setsid", "timeout", "sudo", "doas", "su", "runuser",
		"setpriv", "flock", "xargs", "systemd-run", "chrt", "taskset", "stdbuf", "unshare", "nsenter", "chroot", "ip", "time", "script", "unbuffer"}
	// linesAfterC run a line after -c, besides shells.
	linesAfterC = []string{"su", "runuser", "flock", "script", "sg"}
)

// maxDepth bounds how often a line may hold a line.
const maxDepth = 8

// names is what is found in a command.
type names struct {
	paths []string // absolute
	err   error    // the first
	depth int
}

// named returns the absolute paths of what a command names.
func named(command string) ([]string, error) {
	var n names
	n.line(command)
	return n.paths, n.err
}

func (n *names) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}

func (n *names) relative(word string) {
	n.fail(fmt.Errorf("check %s: it is a relative path, and what that is depends on where the command is then: write it from /", word))
}

// line takes in what a shell would run.
func (n *names) line(text string) {
	if n.depth++; n.depth > maxDepth {
		n.fail(errors.New("read the command: too many commands in commands"))
		return
	}
	defer func() { n.depth-- }()
	file, err := parse(text)
	if err != nil {
		n.fail(err)
		return
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			n.call(words(node.Args))
		case *syntax.Redirect:
			return n.redirect(node)
		case *syntax.Word:
			n.search(word(node))
		}
		return true
	})
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

// redirect takes in what a command reads, and reports whether to look into the
// words of the redirection. What it only writes to runs nothing.
func (n *names) redirect(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		if file := word(r.Word); literal(file) && !filepath.IsAbs(file) {
			n.relative(file)
		}
		return true
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	}
	return false
}

// call takes in a simple command. A word that can't be known is not.
func (n *names) call(args []string) {
	if len(args) == 0 || !literal(args[0]) {
		return
	}
	n.program(args[0])
	for _, arg := range args[1:] {
		if strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
			n.relative(strings.TrimSuffix(arg, unknown))
		}
	}
	name := filepath.Base(args[0])
	switch {
	case name == "eval":
		n.line(strings.ReplaceAll(strings.Join(args[1:], " "), unknown, "$unknown"))
	case name == "trap" && len(args) > 2 && literal(args[1]) && args[1] != "-":
		n.line(args[1])
	case slices.Contains(shells, name):
		n.shell(args[1:])
	case slices.Contains(interpreters, name) || strings.HasPrefix(name, "python"):
		if len(args) > 1 {
			n.script(args[1])
		}
	case slices.Contains(wrappers, name):
		n.wrapped(name, args[1:])
	}
}

// program takes in a program's name.
func (n *names) program(name string) {
	switch path, err := exec.LookPath(name); {
	case filepath.IsAbs(name):
		n.paths = append(n.paths, name)
	case strings.Contains(name, "/"), errors.Is(err, exec.ErrDot):
		n.relative(name)
	case err == nil:
		n.paths = append(n.paths, path)
	} // else a builtin, a function, or nothing: the shell will say
}

// script takes in the file that an interpreter is to run, unless that is a flag.
func (n *names) script(arg string) {
	if literal(arg) && arg != "" && !strings.HasPrefix(arg, "-") && !filepath.IsAbs(arg) {
		n.relative(arg)
	}
}

// shell takes in what a shell is given.
func (n *names) shell(args []string) {
	for i, arg := range args {
		switch {
		case !literal(arg):
			return
		case strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c"):
			n.next(args[i+1:])
			return
		case slices.Contains(shells, arg): // busybox sh
			n.shell(args[i+1:])
			return
		case !strings.HasPrefix(arg, "-"):
			n.script(arg)
			return
		}
	}
}

// next takes in the line that comes first in the words.
func (n *names) next(args []string) {
	if len(args) > 0 && literal(args[0]) {
		n.line(args[0])
	}
}

// wrapped takes in what a wrapper is given. Which of its words is the program is
// not known here, so any may be.
func (n *names) wrapped(wrapper string, args []string) {
	for i, arg := range args {
		if (arg == "-c" || arg == "--command") && slices.Contains(linesAfterC, wrapper) {
			n.next(args[i+1:])
			return
		}
		if !literal(arg) || strings.HasPrefix(arg, "-") || arg == "" {
			continue
		}
		if name := filepath.Base(arg); slices.Contains(shells, name) || slices.Contains(interpreters, name) || slices.Contains(wrappers, name) ||
			strings.HasPrefix(name, "python") {
			n.call(args[i:])
			return
		}
		if path, err := exec.LookPath(arg); err == nil && !strings.Contains(arg, "/") {
			n.paths = append(n.paths, path)
		}
	}
}

// search takes in the absolute paths in a word, wherever they begin: in a list, in
// an option, in a text that somebody may run. Of one that goes on with something
// unknown it takes in the directory.
func (n *names) search(text string) {
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\n;|&()<>`\"'$=:,{}@", c) }) {
		known, _, cut := strings.Cut(part, unknown)
		if cut {
			known = known[:strings.LastIndexByte(known, '/')+1]
		}
		if strings.HasPrefix(known, "/") {
			n.paths = append(n.paths, known)
		}
	}
}

// unknown stands for the part of a word that only the shell will know.
const unknown = "\x00"

func literal(word string) bool { return !strings.Contains(word, unknown) }

func words(all []*syntax.Word) []string {
	var texts []string
	for _, w := range all {
		texts = append(texts, word(w))
	}
	return texts
}

// word returns a word without its quotes.
func word(w *syntax.Word) string {
	if w == nil {
		return unknown
	}
	return parts(w.Parts)
}

func parts(all []syntax.WordPart) string {
	var text strings.Builder
	for _, part := range all {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(p.Value)
		case *syntax.SglQuoted:
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			text.WriteString(parts(p.Parts))
		default:
			text.WriteString(unknown)
		}
	}
	return text.String()
}
