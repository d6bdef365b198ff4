package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The commands and flags that the agent's texts advise must exist in this program.
func TestWhatTheAgentAdvisesExists(t *testing.T) {
	words, flags := map[string][]string{}, map[string]bool{}
	for _, c := range commands() {
		words[c.name] = c.words
		for _, f := range c.allFlags() {
			for _, name := range f.Names() {
				flags[name] = true
			}
		}
	}
	command := regexp.MustCompile(`\bdoyen ([a-z][a-z-]+)(?: ([a-z]+))?`)
	flag := regexp.MustCompile(`--([a-z][a-z-]*)`)
	found := 0
	check := func(at token.Position, text string) {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			if m[1] == "cluster" || m[1] == "as" {
				continue // "doyen cluster key" and "run doyen as root" name no command
			}
			found++
			known, exists := words[m[1]]
			if !exists || m[1] == "voters" && m[2] != "" && !slices.Contains(known, m[2]) {
				t.Errorf("%s: %q is not a command", at, m[0])
			}
		}
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			found++
			if !flags[m[1]] {
				t.Errorf("%s: %q is not a flag", at, m[0])
			}
		}
	}
	err := filepath.WalkDir("../../agent", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.Contains(l.Value, " ") {
				check(fset.Position(l.Pos()), l.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("found %d commands and flags: the walk is broken", found)
	}
}
