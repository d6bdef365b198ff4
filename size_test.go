package doyen_test

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// limits are how large a part may become, without its tests. Whoever raises one
// gives the reason in the commit.
var limits = []struct {
	part           string
	folders        []string // and what is below them
	code, comments int      // lines
}{
	{"the heart", []string{"election", "bully", "ring", "failuredetector", "quorum", "contest", "elector"}, 7670, 1275},
	{"the testbed", []string{"testbed", "cmd/testbed"}, 24250, 2420},
}

// In lines: what fits in a head. A test may be longer than a function, for its
// table of cases.
const (
	longestFile     = 400
	longestFunction = 70
)

func TestPartsStayWithinTheirSize(t *testing.T) {
	all := sources(t)
	for _, l := range limits {
		code, comments := 0, 0
		for _, s := range all {
			if s.test || !slices.ContainsFunc(l.folders, func(f string) bool { return s.folder == f || strings.HasPrefix(s.folder, f+"/") }) {
				continue
			}
			c, m := countLines(t, s.path)
			code, comments = code+c, comments+m
		}
		if code == 0 {
			t.Errorf("found no code of %s: the count is broken", l.part)
		}
		if code > l.code || comments > l.comments {
			t.Errorf("%s has %d lines of code and %d of comments; at most %d and %d", l.part, code, comments, l.code, l.comments)
		}
	}
}

// countLines returns how many lines of a file have code, and how many only comments.
func countLines(t *testing.T, path string) (code, comments int) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	file := fset.AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	coded, commented := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		kind := coded
		if tok == token.COMMENT {
			kind = commented
		}
		first := file.Line(pos)
		for line := first; line <= first+strings.Count(lit, "\n"); line++ {
			kind[line] = true
		}
	}
	for line := range commented {
		if !coded[line] {
			comments++
		}
	}
	return len(coded), comments
}

func TestFilesAndFunctionsFitInAHead(t *testing.T) {
	for _, s := range sources(t) {
		lines := func(n ast.Node) int { return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1 }
		if n := s.fset.File(s.file.Pos()).LineCount(); n > longestFile {
			t.Errorf("%s has %d lines, more than %d", s.path, n, longestFile)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !s.test && lines(f) > longestFunction {
				t.Errorf("%s: %s has %d lines, more than %d", s.fset.Position(f.Pos()), f.Name.Name, lines(f), longestFunction)
			}
		}
	}
}
