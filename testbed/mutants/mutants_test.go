package mutants

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestEveryMutantApplies shows, without running anything, that each change
// still finds its place in the code and leaves Go behind. Who changes code that
// a mutant stands on adapts the mutant.
func TestEveryMutantApplies(t *testing.T) {
	all, err := Read(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	tree := os.DirFS("../..")
	places := map[string]bool{}
	for _, s := range stages(DefaultSeeds) {
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

func TestAnEditFindsItsLinesExactlyOnce(t *testing.T) {
	tree := fstest.MapFS{"p/x.go": {Data: []byte("one\ntwo\n\tthree\ntwo\nfour\n")},
		"p/y.go": {Data: []byte("six\n")}, "p/x_test.go": {Data: []byte("one\nfive\n")}}
	for edit, want := range map[string]string{
		"-one\n+1\n":                "1\ntwo\n\tthree\ntwo\nfour\n",
		" one\n-two\n":              "one\n\tthree\ntwo\nfour\n",
		"-\tthree\n+\t3\n two\n":    "one\ntwo\n\t3\ntwo\nfour\n",
		"-one\n+1\n@@\n-four\n+4\n": "1\ntwo\n\tthree\ntwo\n4\n",
		"-two\n+2\n":                "2 times",
		"-three\n+3\n":              "0 times", // only whole lines are meant
		"-five\n+5\n":               "0 times",
	} {
		m, err := parse("m", []byte("rule: r\nbreaks: b\nwhere: w\n-- p --\n"+edit))
		if err != nil {
			t.Fatalf("%q: %v", edit, err)
		}
		files, err := m.Apply(tree)
		if got := string(files["p/x.go"]); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v; want %q", edit, got, err, want)
		}
	}
}

func TestAMutantThatSaysTooLittleIsRefused(t *testing.T) {
	const head = "rule: r\nbreaks: b\nwhere: w\n"
	for text, want := range map[string]string{
		"":                                  "its head must say",
		"rule: r\nbreaks: b\n-- x --\n-a\n": "its head must say",
		"author: me\n" + head:               "is neither rule",
		head:                                "changes nothing",
		head + "-- x --\n same\n":           "changes nothing",
		head + "-- x --\n+only\n":           "does not name a place",
		head + "-- x --\n-a\n@@\n":          "changes nothing",
		head + "-- x --\nno mark\n-a\n+b\n": "starts with neither",
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
	for _, edit := range [][2]string{
		{"func Two() int { return 2 }\n", "func Two() int { return 3 }\n"},
		{"func Unseen() int { return 1 }\n", "func Unseen() int { return 0 }\n"},
		{"func Two() int { return 2 }\n", "func Two() int { return two }\n"},
		{"func Three() int { return 3 }\n", ""},
		{"func Loop() {}\n", "func Loop() { select {} }\n"},
	} {
		all = append(all, Mutant{Name: fmt.Sprint(len(all)), Where: "p", Edits: []Edit{{Package: "p", Old: edit[0], New: edit[1]}}})
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
	if len(r.Missed()) != 3 || outcomes[0].Test != "TestTwo" || outcomes[4].Test != "TestTwo" || !strings.Contains(r.Table(), "5 mutants, 2 caught") {
		t.Errorf("missed %d, by %q\n%s", len(r.Missed()), outcomes[0].Test, r.Table())
	}
	if text, err := os.ReadFile(dir + "/p/p.go"); err != nil || strings.Contains(string(text), "return 3") {
		t.Errorf("the tree was touched: %v\n%s", err, text)
	}
}
