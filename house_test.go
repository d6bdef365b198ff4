// Package doyen_test keeps the rules of the house (docs/architecture.md): who
// may import what, that the pure packages stay pure, and that each package
// says what it guarantees.
package doyen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/doyen-election/doyen/"

// pure packages take time, randomness and durable state as arguments.
var pure = []string{"election", "bully", "ring", "failuredetector", "quorum", "contest", "roster", "elector", "internal/base/codec", "internal/base/each", "internal/base/wrap", "internal/calendar", "internal/jobs", "internal/plan", "internal/virtual", "transport/inbox"}

// layers are the packages of the product, the lowest first. A package imports only packages of
// lower layers.
var layers = [][]string{
	{"internal/base/each", "internal/base/fd", "internal/base/offer", "internal/base/wrap"},
	{"api", "election", "internal/base/alarm", "internal/base/footprint", "internal/base/logger", "internal/calendar"},
	{"internal/base/boottime", "internal/base/codec", "internal/base/leasepage", "internal/door", "internal/jobs"},
	{"bully", "failuredetector", "quorum", "ring", "internal/virtual", "transport/inbox"},
	{"contest", "roster"},
	{"elector"},
	{"client", "membership", "transport", "internal/plan"},
	{"client/clienttest", "internal/act/guard"},
	{"internal/act/health", "internal/act/hook"},
	{"internal/act", "internal/act/runner"},
	{"agent/access", "agent/forward", "agent/history", "agent/pages", "agent/record", "agent/store", "agent/watch", "agent/words"},
	{"agent/actors", "agent/actors/proof", "agent/serve/page", "agent/serve/socket"},
	{"agent/settings", "internal/keeper"},
	{"agent/serve", "internal/doctor"},
	{"agent/loop"},
	{"agent"},
	{"cmd/doyen"},
}

func TestNoPackageImportsOneAboveIt(t *testing.T) {
	layer := map[string]int{}
	for i, packages := range layers {
		for _, p := range packages {
			layer[p] = i + 1
		}
	}
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || s.folder == "." || below(s.folder, limits[0].except) {
			continue
		}
		own := layer[s.folder]
		if own == 0 {
			t.Errorf("%s is in no layer: add it to the table", s.folder)
		}
		seen[s.folder] = true
		for _, path := range imports(s) {
			if p, ours := strings.CutPrefix(path, module); ours && (layer[p] == 0 || layer[p] >= own) {
				t.Errorf("%s imports %s, which is not below %s", s.path, p, s.folder)
			}
		}
	}
	if len(seen) != len(layer) {
		t.Errorf("the table has %d packages, the product %d", len(layer), len(seen))
	}
}

// owners are the packages that may import a library. All others must not. A package's own tests and
// sub-packages count as part of it.
var owners = map[string][]string{
	"github.com/hashicorp/memberlist": {"membership"},
	"github.com/libp2p/":              {"transport"},
	"github.com/urfave/cli":           {"cmd"},
	"github.com/netresearch/go-cron":  {"internal/calendar"},
	"text/template":                   {}, // it finds methods by name: the linker then keeps every method
}

// timeAllowed is what pure packages may use of package time: units, but no clock.
var timeAllowed = []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// calendarAllowed is what packages about dates may use besides: names of dates, but no clock.
var calendarAllowed = map[string][]string{
	"internal/calendar": {"Time", "Location", "LoadLocation", "UTC"},
	"internal/jobs":     {"Time", "UTC", "Parse", "RFC3339"},
}

type source struct {
	folder string // slash-separated, relative to the module
	path   string
	test   bool
	file   *ast.File
	fset   *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	found, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 50 {
		t.Fatalf("found %d Go files: the walk is broken", len(found))
	}
	return found
}

// parsed parses all files once for all tests: no test changes them.
var parsed = sync.OnceValues(func() (found []source, err error) {
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
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
	return found, err
})

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
			if own, ok := strings.CutPrefix(p, module+"internal/"); ok && !strings.Contains(s.folder, "/") {
				t.Errorf("%s imports %s, which stands on the heart", s.path, own)
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
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && x.Obj == nil && !slices.Contains(timeAllowed, n.Sel.Name) && !slices.Contains(calendarAllowed[s.folder], n.Sel.Name) {
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

// belowClient are the packages that a program depends on through the client.
var belowClient = []string{"api", "internal/base/alarm", "internal/base/leasepage"}

// The client and what it imports import little, because programs then depend on it too.
func TestTheClientAndWhatItImportsNeedOnlyTheSystem(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.folder != "client" && !slices.Contains(belowClient, s.folder) {
			continue
		}
		for _, p := range imports(s) {
			own, ok := strings.CutPrefix(p, module)
			if ok && !slices.Contains(belowClient, own) || !ok && strings.Contains(p, ".") && p != "golang.org/x/sys/unix" {
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

// spoken are the folders, their sub-folders included, whose strings people read:
// help, errors, warnings, log lines and pages.
var spoken = []string{
	"agent", "api", "bully", "client", "cmd/doyen", "contest", "election", "elector", "failuredetector", "internal",
	"membership", "quorum", "ring", "transport",
	"cmd/testbed", "testbed",
}

// banned are phrases that a reader has to think about, and what to write instead.
var banned = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b(is|are|was|were) no\b`), "is not a …, is not valid …"},
	{regexp.MustCompile(`\bwho(ever|m)\b`), "the agent that, a user that, which agents"},
	{regexp.MustCompile(`\banew\b`), "again"},
	{regexp.MustCompile(`\b(stands?|stood|standing)\b`), "is a candidate in, candidacy"},
	{regexp.MustCompile(`\b(un)?told\b`), "is notified, has been reported, unreported"},
	{regexp.MustCompile(`\blate words?\b`), "reported by, a late message"},
	{regexp.MustCompile(`\b(says|said|speaks?|spoke)\b`), "shows, reports, sends"},
	{regexp.MustCompile(`\bowes?\b`), "expects a reply from"},
	{regexp.MustCompile(`\blets? go\b`), "closes, releases"},
	{regexp.MustCompile(`\bleft out\b|\bleaves? (it|them|one of them) out\b`), "skipped, omit it"},
	{regexp.MustCompile(`\btakes? note\b|\btaken note\b`), "records, recorded"},
	{regexp.MustCompile(`\blooks? for\b`), "checks"},
	{regexp.MustCompile(`\bmend(s|ed|ing)?\b`), "repair, of a link: heal"},
	{regexp.MustCompile(`\bat the latest\b`), "no later than"},
	{regexp.MustCompile(`\bof (its|their) own\b`), "its own, separate"},
	{regexp.MustCompile(`\b(is|are|was|were) over\b`), "has expired, has ended, ended … earlier"},
	{regexp.MustCompile(`\bbeg(in|ins|an) with\b|\bbegun\b`), "start with, started"},
	{regexp.MustCompile(`\b(senseless|malformed)\b`), "invalid"},
	{regexp.MustCompile(`\bwhole numbers?\b`), "an integer"},
	{regexp.MustCompile(`\bfor ever\b`), "until …, forever"},
}

// plainWords are what a banned phrase may be a part of: good English, and the name of
// an argument.
var plainWords = regexp.MustCompile(`\bthere (is|are|was|were) no\b|\bno (longer|later|more than)\b|\bover (the|a) limit\b|\bsays=`)

// unplain returns the banned phrases of a text, each with what to write instead.
// A single word is a code, a label or a key, which programs compare.
func unplain(text string) (found []string) {
	if !strings.Contains(text, " ") {
		return nil
	}
	text = plainWords.ReplaceAllString(text, "")
	for _, b := range banned {
		if phrase := b.phrase.FindString(text); phrase != "" {
			found = append(found, strconv.Quote(phrase)+": write "+b.instead)
		}
	}
	return found
}

func isSpoken(folder string) bool {
	return slices.ContainsFunc(spoken, func(f string) bool { return folder == f || strings.HasPrefix(folder, f+"/") })
}

func TestWhatPeopleReadIsPlainEnglish(t *testing.T) {
	count := 0
	for _, s := range sources(t) {
		if s.test || !isSpoken(s.folder) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				count++
				for _, bad := range unplain(lit.Value) {
					t.Errorf("%s: %s", s.fset.Position(lit.Pos()), bad)
				}
			}
			return true
		})
	}
	if count < 1000 {
		t.Errorf("found %d strings: the walk is broken", count)
	}
}

// Pages and scripts that the program holds are read as well.
func TestEmbeddedTextIsPlainEnglish(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		kind := filepath.Ext(path)
		if err != nil || d.IsDir() || kind != ".html" && kind != ".tmpl" || !isSpoken(filepath.ToSlash(filepath.Dir(path))) {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			for _, bad := range unplain(line) {
				t.Errorf("%s:%d: %s", path, n, bad)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}
