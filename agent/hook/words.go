package hook

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	// shells run a script, or a line after -c.
	shells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox"}
	// interpreters run a script.
	interpreters = []string{"perl", "ruby", "node", "php", "lua", "tclsh", ".", "source"}
	// wrappers run another program, which is somewhere among their words.
	wrappers = []string{"env", "exec", "command", "builtin", "nice", "ionice", "nohup", "setsid", "timeout", "sudo", "doas", "su", "runuser",
		"setpriv", "flock", "xargs", "systemd-run", "chrt", "taskset", "stdbuf", "unshare", "nsenter", "chroot", "ip", "time", "script", "unbuffer"}
	// linesAfterC are other programs than shells that run a line after -c.
	linesAfterC = []string{"su", "runuser", "flock", "script", "sg"}
	// runVariables name files that programs run or load without being asked, or the directories
	// in which programs search for such files.
	runVariables = []string{"PATH", "BASH_ENV", "ENV", "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "PYTHONSTARTUP", "PYTHONPATH", "PERL5LIB", "RUBYLIB", "NODE_PATH"}
)

// maxDepth bounds how deep lines may be nested in lines.
const maxDepth = 8

// names holds what is found in a command.
type names struct {
	paths []string // absolute
	run   []string // those of paths that are run, or in which programs are searched
	err   error    // the first error
	depth int
}

// find returns what a command names.
func find(command string) (names, error) {
	var n names
	n.line(command)
	return n, n.err
}

func (n *names) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}

func (n *names) relative(word string) {
	n.fail(fmt.Errorf("check %s: it is a relative path, which depends on the working directory: write an absolute path", word))
}

// line collects what a shell would run.
func (n *names) line(text string) {
	if n.depth++; n.depth > maxDepth {
		n.fail(errors.New("read the command: too many nested commands"))
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
		case *syntax.Assign:
			if node.Name != nil {
				n.assign(node.Name.Value, word(node.Value))
			}
		case *syntax.Word:
			n.search(word(node))
		}
		return true
	})
}

// parse reads the command as a POSIX shell does, or else as bash does, since /bin/sh may be bash.
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

// redirect collects what a command reads, and reports whether the words of the redirection are
// to be searched. A file that it only writes to runs nothing.
func (n *names) redirect(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		file := word(r.Word)
		if literal(file) && !filepath.IsAbs(file) {
			n.relative(file)
		}
		if r.Op == syntax.RdrIn { // RdrInOut creates the file
			n.runs(file)
		}
		return true
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	}
	return false
}

// assign collects the value of a variable that names what is run, or where that is searched.
func (n *names) assign(name, value string) {
	if !slices.Contains(runVariables, name) {
		return
	}
	for _, path := range strings.Split(value, ":") {
		if name == "PATH" && literal(path) && !filepath.IsAbs(path) && !strings.HasPrefix(path, "~") {
			n.relative(cmp.Or(path, "."))
		}
		n.runs(path)
	}
}

// runs collects a path that is run. If the path ends in something unknown, runs collects its
// directory.
func (n *names) runs(path string) {
	known, _, cut := strings.Cut(path, unknown)
	if cut {
		known = known[:strings.LastIndexByte(known, '/')+1]
	}
	if filepath.IsAbs(known) {
		n.run = append(n.run, known)
	}
}

// call collects a simple command. It skips words that can't be known.
func (n *names) call(args []string) {
	if len(args) == 0 {
		return
	}
	n.runs(args[0])
	if !literal(args[0]) {
		return
	}
	n.program(args[0])
	for _, arg := range args[1:] {
		if strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
			n.relative(strings.TrimSuffix(arg, unknown))
		}
		if name, value, ok := strings.Cut(arg, "="); ok { // as arguments of env and the like
			n.assign(name, value)
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
		n.interpreter(args[1:])
	case slices.Contains(wrappers, name):
		n.wrapped(name, args[1:])
	}
}

// program collects a program's name. It also collects the directories of this process's PATH
// up to the one that has the program: a file that is put there is run in its place.
func (n *names) program(name string) {
	path, err := exec.LookPath(name)
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			n.relative(name)
		}
		return
	}
	if errors.Is(err, exec.ErrDot) {
		n.relative(name)
		return
	}
	if err == nil {
		n.run = append(n.run, path)
	} // else a builtin, a function, or nothing: the shell will report that
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		n.runs(dir)
		if err == nil && dir == filepath.Dir(path) {
			return
		}
	}
}

// script collects the file that an interpreter is to run, unless the word is a flag.
func (n *names) script(arg string) {
	n.runs(arg)
	if literal(arg) && arg != "" && !strings.HasPrefix(arg, "-") && !filepath.IsAbs(arg) {
		n.relative(arg)
	}
}

// interpreter collects what an interpreter is given: a script, perhaps after flags. Some flags
// take a word, and some have a text as the script.
func (n *names) interpreter(args []string) {
	for i, arg := range args {
		if i == 0 {
			n.script(arg)
		}
		switch {
		case arg == "--eval", arg == "--print", arg == "--run":
			return
		case strings.HasPrefix(arg, "--"), strings.HasPrefix(arg, "-M"), strings.HasPrefix(arg, "-I"):
		case strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, "cemrE"):
			return
		case strings.HasPrefix(arg, "/"):
			n.runs(arg)
			return
		case i == 0 && !strings.HasPrefix(arg, "-"):
			return
		}
	}
}

// shell collects what a shell is given: options, and then a line if -c is one of them, or else
// a script.
func (n *names) shell(args []string) {
	line := false
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--rcfile", arg == "--init-file":
			if len(args) > 0 {
				n.script(args[0])
				args = args[1:]
			}
			continue
		case strings.HasPrefix(arg, "--") && len(arg) > 2:
			continue
		case arg != "-" && arg != "--" && arg != "" && strings.ContainsRune("-+", rune(arg[0])):
			line = line || arg[0] == '-' && strings.Contains(arg, "c")
			// Each -o, -O, +o and +O, alone or with other letters, is followed by a name.
			args = args[min(len(args), strings.Count(strings.ToLower(arg), "o")):]
			if !literal(arg) {
				return
			}
			continue
		case arg == "-", arg == "--":
			if len(args) == 0 {
				return
			}
			arg = args[0]
		}
		switch {
		case line:
			n.next([]string{arg})
		case slices.Contains(shells, arg): // as in busybox sh
			n.shell(args)
		default:
			n.script(arg)
		}
		return
	}
}

// next collects the first of the words as a line.
func (n *names) next(args []string) {
	if len(args) > 0 && literal(args[0]) {
		n.line(args[0])
	}
}

// wrapped collects what a wrapper is given. Which of its words is the program is not known
// here. So any of them may be it, up to one that certainly is: a word after a flag may belong
// to the flag, and a word of ip may be the name of anything.
func (n *names) wrapped(wrapper string, args []string) {
	found, afterFlag := wrapper == "script", false // script has its program only after -c
	lock := wrapper == "flock"                     // flock's first word is a file that nobody runs
	for i, arg := range args {
		if (arg == "-c" || arg == "--command") && slices.Contains(linesAfterC, wrapper) {
			n.next(args[i+1:])
			return
		}
		if strings.HasPrefix(arg, "-") {
			afterFlag = strings.Trim(arg, letters) == "" // else the flag has its value in it
			continue
		}
		ofFlag := afterFlag
		afterFlag = false
		if _, err := strconv.ParseFloat(arg, 64); lock && !(ofFlag && err == nil) {
			lock = false
			continue
		}
		if !found {
			n.runs(arg)
		}
		if !literal(arg) || arg == "" {
			continue
		}
		if name := filepath.Base(arg); slices.Contains(shells, name) || slices.Contains(interpreters, name) || slices.Contains(wrappers, name) ||
			strings.HasPrefix(name, "python") {
			n.call(args[i:])
			return
		}
		path, err := exec.LookPath(arg)
		if err == nil && !strings.Contains(arg, "/") {
			n.paths = append(n.paths, path)
		}
		found = found || !ofFlag && wrapper != "ip" && (err == nil || strings.HasPrefix(arg, "/"))
	}
}

// letters are what a flag without a value in it consists of.
const letters = "-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// search collects the absolute paths in a word, wherever they begin: in a list, in an option,
// or in a text that a program may run. If a path goes on with something unknown, search
// collects its directory.
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
