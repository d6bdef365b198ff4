package doyen_test

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// limits are how large a part may be, without its tests. They are a ratchet, not a
// meter: each one only falls, and a commit that raises one deletes as much elsewhere.
var limits = []struct {
	part           string
	folders        []string // and what is below them; "." is the whole module
	except         []string // and what is below them
	code, comments int      // lines
}{
	// What is installed, with the client that programs use.
	{"the product", []string{"."}, []string{"testbed", "cmd/testbed", "packaging", "examples"}, 42443, 6183},
	{"the heart", []string{"election", "bully", "ring", "failuredetector", "quorum", "contest", "roster", "elector"}, nil, 8216, 1345},
	{"the testbed", []string{"testbed", "cmd/testbed"}, nil, 23440, 2467},
}

// methods are how many a receiver may have, without those of tests: a type that does
// everything can't be read in parts. These limits only fall too.
var methods = map[string]int{
	"elector.Elector":          136,
	"agent/loop.Loop":          40,
	"agent/serve.Server":       62,
	"contest.Contest":          109,
	"testbed/simulation.world": 213,
}

const (
	mostMethods = 60    // of any other receiver
	docsWords   = 65249 // README.md, docs and the folders in it
)

// In lines: short enough to understand at once. A test may be longer than a function, because of
// its table of cases.
const (
	longestFile     = 400
	longestFunction = 70
)

func TestPartsStayWithinTheirSize(t *testing.T) {
	all := sources(t)
	for _, l := range limits {
		code, comments := 0, 0
		for _, s := range all {
			if s.test || !below(s.folder, l.folders) || below(s.folder, l.except) {
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

// below reports whether a folder is one of those or in one of them.
func below(folder string, those []string) bool {
	return slices.ContainsFunc(those, func(f string) bool { return f == "." || folder == f || strings.HasPrefix(folder, f+"/") })
}

func TestNoReceiverDoesEverything(t *testing.T) {
	count := map[string]int{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !s.test && f.Recv != nil {
				count[s.folder+"."+receiver(f)]++
			}
		}
	}
	for name, n := range count {
		limit, named := methods[name]
		if !named {
			limit = mostMethods
		}
		if n > limit {
			t.Errorf("%s has %d methods, at most %d", name, n, limit)
		}
	}
	for name, limit := range methods { // a receiver needs its own limit only above the general one
		if count[name] == 0 || limit > mostMethods && count[name] <= mostMethods {
			t.Errorf("%s has %d methods and needs no limit of its own", name, count[name])
		}
	}
}

func TestTheDocsCanBeRead(t *testing.T) {
	pages := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		pages = append(pages, found...)
	}
	words := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		words += len(strings.Fields(string(text)))
	}
	if words > docsWords {
		t.Errorf("the docs have %d words, at most %d", words, docsWords)
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
