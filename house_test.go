// Package doyen_test keeps the rules of the house (docs/architecture.md): who
// may import what, that the pure packages stay pure, and that each package
// says what it guarantees.
package doyen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/doyen-election/doyen/"

// pure packages take time, randomness and durable state as arguments.
var pure = []string{"election", "bully", "ring", "failuredetector", "quorum", "elector", "codec", "plan", "transport/inbox"}

// owners are the only packages that may import a library, their own
// sub-packages and tests included.
var owners = map[string][]string{
	"github.com/hashicorp/memberlist": {"membership"},
	"github.com/libp2p/":              {"transport"},
	"github.com/urfave/cli":           {"cmd"},
}

// timeAllowed is what of package time is a unit and not a clock.
var timeAllowed = []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

type source struct {
	folder string // slash-separated, relative to the module
	path   string
	test   bool
	file   *ast.File
	fset   *token.FileSet
}

func sources(t *testing.T) []source {
	var found []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" || d.Name() == "tools") {
			if d != nil && d.IsDir() && err == nil {
				return fs.SkipDir
			}
			return err
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		found = append(found, source{folder: filepath.ToSlash(filepath.Dir(path)), path: path,
			test: strings.HasSuffix(path, "_test.go"), file: file, fset: fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 50 {
		t.Fatalf("found %d Go files: the walk is broken", len(found))
	}
	return found
}

func imports(s source) []string {
	var paths []string
	for _, i := range s.file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

func TestPurePackagesImportNoClockNetworkDiskOrLog(t *testing.T) {
	forbidden := []string{"context", "sync", "sync/atomic", "net", "os", "log", "log/slog", "io", "runtime", "testing", "math/rand", "crypto/rand"}
	for _, s := range sources(t) {
		if s.test || !slices.Contains(pure, s.folder) {
			continue
		}
		for _, p := range imports(s) {
			if slices.Contains(forbidden, p) || strings.HasPrefix(p, "net/") || strings.HasPrefix(p, "os/") {
				t.Errorf("%s imports %s", s.path, p)
			}
			if own, ok := strings.CutPrefix(p, module); ok && !slices.Contains(pure, own) {
				t.Errorf("%s imports %s, which is not pure", s.path, p)
			}
		}
	}
}

func TestPurePackagesStartNoGoroutineAndReadNoClock(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !slices.Contains(pure, s.folder) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
				t.Errorf("%s: goroutines and channels belong to the agent", s.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && x.Obj == nil && !slices.Contains(timeAllowed, n.Sel.Name) {
					t.Errorf("%s: time.%s is a clock", s.fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestEachLibraryHasOneOwner(t *testing.T) {
	for _, s := range sources(t) {
		for _, p := range imports(s) {
			for library, folders := range owners {
				owned := slices.ContainsFunc(folders, func(f string) bool { return s.folder == f || strings.HasPrefix(s.folder, f+"/") })
				if strings.HasPrefix(p, library) && !owned {
					t.Errorf("%s imports %s, which belongs to %v", s.path, p, folders)
				}
			}
		}
	}
}

func TestTheClientNeedsOnlyTheAPI(t *testing.T) {
	for _, s := range sources(t) {
		if s.folder != "client" || s.test {
			continue
		}
		for _, p := range imports(s) {
			if strings.Contains(p, ".") && !slices.Contains([]string{module + "api", module + "leasepage", module + "client/alarm"}, p) {
				t.Errorf("%s imports %s", s.path, p)
			}
		}
	}
}

// What programs of others come to depend on through the client stays small.
func TestThePackagesBelowTheClientNeedOnlyTheSystem(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !slices.Contains([]string{"leasepage", "client/alarm"}, s.folder) {
			continue
		}
		for _, p := range imports(s) {
			if strings.Contains(p, ".") && p != "golang.org/x/sys/unix" {
				t.Errorf("%s imports %s", s.path, p)
			}
		}
	}
}

func TestEachPackageSaysWhatItIs(t *testing.T) {
	docs := map[string]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if s.file.Doc != nil {
			docs[s.folder] += s.file.Doc.Text()
		} else if _, ok := docs[s.folder]; !ok {
			docs[s.folder] = ""
		}
	}
	for folder, doc := range docs {
		if len(doc) < 60 {
			t.Errorf("%s has no package doc that says what it does", folder)
		}
	}
}

func TestNoTestSleeps(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
				t.Errorf("%s: tests wait for what they want, they never sleep", s.fset.Position(n.Pos()))
			}
			return true
		})
	}
}
