package hook

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtins are commands that a shell has itself, and some hosts not as a program.
var builtins = []string{":", ".", "[", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare", "echo", "eval", "exec", "exit", "export",
	"false", "fg", "getopts", "hash", "jobs", "kill", "let", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test",
	"times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait"}

// Missing returns an error if a program that the command runs in any case does not exist, or
// is not executable: most probably its name is misspelt. It does not look into branches,
// functions and what another program is given, and trusts a line that sets PATH.
func Missing(command string) error {
	file, err := parse(command)
	if err != nil {
		return err
	}
	for _, s := range file.Stmts {
		call, ok := first(s).(*syntax.CallExpr)
		if !ok {
			return nil // a function that is declared here, or a branch
		}
		if slices.ContainsFunc(call.Assigns, setsPath) {
			return nil
		}
		args := words(call.Args)
		if len(args) > 1 && args[0] == "exec" && !strings.HasPrefix(args[1], "-") {
			args = args[1:]
		}
		if len(args) == 0 || !literal(args[0]) || slices.Contains(builtins, args[0]) {
			continue
		}
		if err := exists(args[0]); err != nil {
			return err
		}
	}
	return nil
}

// Program returns the program that a command runs first, without what it is given, which may be
// secret. It is empty if that is not plain.
func Program(command string) string {
	file, err := parse(command)
	if err != nil || len(file.Stmts) == 0 {
		return ""
	}
	if call, ok := first(file.Stmts[0]).(*syntax.CallExpr); ok && len(call.Args) > 0 {
		if program := word(call.Args[0]); literal(program) {
			return program
		}
	}
	return ""
}

// first returns the command that a statement runs first.
func first(s *syntax.Stmt) syntax.Command {
	for {
		list, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok {
			return s.Cmd
		}
		s = list.X
	}
}

func setsPath(a *syntax.Assign) bool { return a.Name != nil && a.Name.Value == "PATH" }

func exists(program string) error {
	if !strings.Contains(program, "/") {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("there is no program %s in %s", program, os.Getenv("PATH"))
		}
		return nil
	}
	if !filepath.IsAbs(program) {
		return nil // Check judges it
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
