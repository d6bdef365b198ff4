package mutants

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestEveryMutantApplies shows, without running tests, that each change still finds its place in
// the code, and that the result parses as Go. If you change code that a mutant names, adapt the
// mutant.
func TestEveryMutantApplies(t *testing.T) {
	all, err := Read(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	tree := os.DirFS("../..")
	places := map[string]bool{}
	for _, s := range stages(seeds) {
		places[s.pkg] = true
	}
	for _, m := range all {
		files, err := m.Apply(tree)
		if err != nil {
			t.Error(err)
		}
		for name, data := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), name, data, 0); err != nil {
				t.Errorf("%s leaves no Go behind: %v", m.Name, err)
			}
		}
		if !places[m.Where] {
			t.Errorf("%s: %q is not among the packages whose tests are run", m.Name, m.Where)
		}
	}
	if len(all) < 30 {
		t.Errorf("%d mutants, want 30 or more", len(all))
	}
}

func TestAnEditFindsItsPlaceExactlyOnce(t *testing.T) {
	tree := fstest.MapFS{
		"p/x.go": {Data: []byte("package p\n\nimport \"os\"\n\nconst (\n\ta = 1\n\tb = 2\n)\n\ntype s struct{ n int }\n\n" +
			"func (x *s) f(n int) {\n\tif n > a && // why\n\t\tx.n > a {\n\t\tos.Exit(n)\n\t}\n\tx.n++\n\tf(n,\n\t\tn)\n}\n")},
		"p/y.go":      {Data: []byte("package p\n\nfunc f(n, m int) { n++ }\n")},
		"p/x_test.go": {Data: []byte("package p\n\nfunc g() { h() }\n")},
	}
	for _, c := range []struct{ where, edit, want string }{
		{"s.f", "-n > a && x.n > a\n+n > a\n", "\tif n > a {\n"},          // the layout does not matter
		{"s.f", "-f(n, n)\n", "\tx.n++\n\t\n}"},                           // a statement is removed
		{"s.f", " x.n++\n+return\n", "\tx.n++\nreturn\n"},                 // a statement is added after it
		{"s.f", "-os.Exit(n)\n+_ = 0\n@@\n-x.n++\n+x.n--\n", "\tx.n--\n"}, // two edits
		{"f", "+return\n", "{\nreturn\n n++ }"},
		{"f", "-n++\n+n--\n", "{ n-- }"},
		{"s", "-int\n+uint\n", "struct{ n uint }"},
		{"b", "-2\n+3\n", "\ta = 1\n\tb = 3\n"},
		{"import", "-\"os\"\n+\"io\"\n", "import \"io\"\n"},
		{"s.f", "-a\n+b\n", "2 times"},
		{"s.f", "-x.m++\n", "0 times"},
		{"s.f", "-x.n+\n", "0 times"}, // only whole tokens match
		{"f", "-f(n, n)\n", "0 times"},
		{"g", "-h()\n", "0 times"}, // tests are not part of the tree that changes
	} {
		m, err := parse("m", []byte("rule: r\nbreaks: b\nwhere: w\n-- p "+c.where+" --\n"+c.edit))
		if err != nil {
			t.Fatalf("%s %q: %v", c.where, c.edit, err)
		}
		files, err := m.Apply(tree)
		got := string(files["p/x.go"]) + string(files["p/y.go"])
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %q: %s; want %q", c.where, c.edit, got, c.want)
		}
	}
}

func TestAMutantThatSaysTooLittleIsRefused(t *testing.T) {
	const head = "rule: r\nbreaks: b\nwhere: w\n"
	for text, want := range map[string]string{
		"":                                    "its head must say",
		"rule: r\nbreaks: b\n-- x f --\n-a\n": "its head must say",
		"author: me\n" + head:                 "is neither rule",
		head:                                  "changes nothing",
		head + "-- x f --\n same\n":           "changes nothing",
		head + "-- x --\n-a\n":                "names a package, and not what in it",
		head + "-- x f --\n-a\n@@\n":          "changes nothing",
		head + "-- x f --\nno mark\n-a\n+b\n": "starts with neither",
	} {
		if _, err := parse("m", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestOnlyAFailingTestCounts reads what the go command writes in each case.
func TestOnlyAFailingTestCounts(t *testing.T) {
	const run = `{"Action":"run","Test":"TestX"}` + "\n"
	for name, c := range map[string]struct {
		events string
		want   Verdict
		test   string
	}{
		"all pass":        {run + `{"Action":"pass","Test":"TestX"}` + "\n" + `{"Action":"pass"}`, Survived, ""},
		"a test fails":    {run + `{"Action":"fail","Test":"TestX/sub"}` + "\n" + `{"Action":"fail","Test":"TestX"}` + "\n" + `{"Action":"fail"}`, Caught, "TestX/sub"},
		"a package fails": {`{"Action":"output","Output":"exit status 2\n"}` + "\n" + `{"Action":"fail"}`, Caught, ""},
		"it hangs": {run + `{"Action":"output","Test":"TestX","Output":"panic: test timed out after 1s\n"}` + "\n" +
			`{"Action":"fail","Test":"TestX"}`, TimedOut, "TestX"},
		"no compiling": {`{"Action":"build-output","Output":"undefined: y\n"}` + "\n" + `{"Action":"build-fail"}` + "\n" +
			`{"Action":"fail","FailedBuild":"p"}`, NoBuild, ""},
	} {
		if got, err := read(strings.NewReader(c.events)); err != nil || got.Verdict != c.want || got.Test != c.test {
			t.Errorf("%s: %s by %q, %v; want %s by %q", name, got.Verdict, got.Test, err, c.want, c.test)
		}
	}
}

func TestThePackageThatShouldNoticeIsFirst(t *testing.T) {
	suite := []stage{{pkg: "p"}, {pkg: "q"}, {pkg: "r"}}
	for where, want := range map[string]string{"p": "pqr", "q": "qpr", "r": "rpq", "elsewhere": "pqr"} {
		got := ""
		for _, s := range (trial{suite: suite}).ordered(Mutant{Where: where}) {
			got += s.pkg
		}
		if got != want {
			t.Errorf("%s: %s, want %s", where, got, want)
		}
	}
}

func TestMutantsOfChangedPackagesComeFirst(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		args = append([]string{"-c", "user.name=test", "-c", "user.email=test@example.org"}, args...)
		if _, err := output(t.Context(), dir, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	if err := os.MkdirAll(dir+"/q/testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	var all []Mutant
	for i := range 20 {
		all = append(all, Mutant{Name: fmt.Sprint(i), Where: "r", Edits: []Edit{{Package: []string{"p", "q"}[i%2]}}})
	}
	orders := map[string]bool{}
	for _, name := range []string{"q/x.go", "q/y.go", "q/testdata/z"} {
		if err := os.WriteFile(dir+"/"+name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", name)
		if err := (module{root: dir}).order(t.Context(), all, "HEAD~"); err != nil {
			t.Fatal(err)
		}
		changed := slices.IndexFunc(all, func(m Mutant) bool { return m.Edits[0].Package == "p" })
		if path.Ext(name) == ".go" && changed != 10 {
			t.Errorf("%s has changed, and only %d mutants of its package come first", name, changed)
		}
		orders[fmt.Sprint(all)] = true
	}
	if len(orders) != 3 {
		t.Errorf("%d orders after three commits", len(orders))
	}
}

// TestRunTellsCaughtFromSurvived tries three changes on a module of its own.
func TestRunTellsCaughtFromSurvived(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module tiny\n\ngo 1.25\n",
		"p/p.go":      "package p\n\nfunc Two() int { return 2 }\n\nfunc Unseen() int { return 1 }\n\nfunc Loop() {}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tLoop()\n\tif Two() != 2 {\n\t\tt.Fatal(Two())\n\t}\n}\n",
		"q/q.go":      "package q\n",
		"q/q_test.go": "package q\n\nimport \"testing\"\n\nfunc TestNothing(t *testing.T) { t.Fatal(\"asked though it can't see the change\") }\n",
	} {
		if err := os.MkdirAll(dir+"/"+name[:1], 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mod := module{root: dir, path: "tiny"}
	suite := []stage{{pkg: "q"}, {pkg: "p"}}
	if err := mod.resolve(t.Context(), suite); err != nil {
		t.Fatal(err)
	}
	var all []Mutant
	for _, edit := range [][3]string{
		{"Two", "2", "3"}, {"Unseen", "1", "0"}, {"Two", "2", "two"}, {"Three", "3", ""}, {"Loop", "", "select {}\n"},
	} {
		all = append(all, Mutant{Name: fmt.Sprint(len(all)), Where: "p", Edits: []Edit{{Package: "p", Within: edit[0], Old: edit[1], New: edit[2]}}})
	}
	var progress strings.Builder
	limit := trial{module: mod, suite: suite, limit: 2 * time.Second}
	outcomes, err := tryAll(t.Context(), limit, all, Options{Progress: &progress})
	if err != nil {
		t.Fatal(err)
	}
	var got []Verdict
	for _, o := range outcomes {
		got = append(got, o.Verdict)
	}
	want := []Verdict{Caught, Survived, NoBuild, NoMatch, TimedOut}
	if !slices.Equal(got, want) {
		t.Errorf("verdicts %v, want %v\n%s", got, want, &progress)
	}
	r := Report{Outcomes: outcomes}
	if len(r.Missed()) != 3 || outcomes[0].Test != "TestTwo" || outcomes[4].Test != "TestTwo" || !strings.Contains(r.Summary(), "5 mutants, 2 caught") {
		t.Errorf("missed %d, by %q\n%s", len(r.Missed()), outcomes[0].Test, r.Summary())
	}
	if text, err := os.ReadFile(dir + "/p/p.go"); err != nil || strings.Contains(string(text), "return 3") {
		t.Errorf("the tree was touched: %v\n%s", err, text)
	}
}
