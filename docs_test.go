package doyen_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are the README and the pages below docs, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.ToSlash(name)] = string(text)
		}
	}
	if len(found) < 20 {
		t.Fatalf("found %d pages: the search is broken", len(found))
	}
	return found
}

var (
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
	quoted = regexp.MustCompile("`[^`\n]*`")
)

// prose is a page without its code, line by line. Quoted text is checked where the program has it.
func prose(page string) []string {
	page = fenced.ReplaceAllStringFunc(page, func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) })
	return strings.Split(quoted.ReplaceAllString(page, "``"), "\n")
}

// plainPages are written in the words of the dictionary in docs/architecture.md.
var plainPages = []string{"README.md", "docs/api.md", "docs/architecture.md", "docs/dependencies.md", "docs/guarantees.md", "docs/jobs.md", "docs/monitoring.md", "docs/operations.md", "docs/performance.md", "docs/run.md", "docs/security.md", "docs/testbed.md", "docs/testing.md", "docs/upgrading.md", "docs/ways-to-elect.md"}

// plainInPages are phrases that pages may use, though the program's texts may not.
var plainInPages = regexp.MustCompile(`\b(says|said|for ever)\b|\b(stands?|standing) down\b|\bstands still\b|\bstood still\b|\blooks? for\b|\bof its own (voters|roster)\b|\bbegins with \*\*|\bhad begun\b|\b(over )?words of\b`)

func TestPagesAreInPlainEnglish(t *testing.T) {
	all := pages(t)
	for name := range all {
		if !slices.Contains(plainPages, name) && !strings.HasPrefix(name, "docs/decisions/") {
			continue
		}
		for i, line := range prose(all[name]) {
			for _, bad := range unplain(plainInPages.ReplaceAllString(strings.ToLower(line), "")) {
				t.Errorf("%s:%d: %s", name, i+1, bad)
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notKept = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the names by which links can point to a page's headings.
func anchors(page string) []string {
	var found []string
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		found = append(found, strings.ReplaceAll(notKept.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return found
}

func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, l := range link.FindAllStringSubmatch(quoted.ReplaceAllString(fenced.ReplaceAllString(text, ""), "``"), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(l[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s: the link %s leads nowhere", name, l[1])
				}
			}
			if page, ok := all[target]; ok && anchor != "" && !slices.Contains(anchors(page), anchor) {
				t.Errorf("%s: %s has no heading for the link %s", name, target, l[1])
			}
		}
	}
}

// The dictionary of docs/architecture.md names types, functions and files that exist.
func TestTheDictionaryNamesWhatExists(t *testing.T) {
	_, words, _ := strings.Cut(pages(t)["docs/architecture.md"], "\n## Words\n")
	words, _, _ = strings.Cut(words, "\n## ")
	declared := map[string]bool{} // "package.Name"
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[s.file.Name.Name+"."+f.Name.Name] = true
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				declared[s.file.Name.Name+"."+n.Name.Name] = true
				if of, ok := n.Type.(*ast.StructType); ok {
					for _, f := range of.Fields.List {
						for _, name := range f.Names {
							declared[n.Name.Name+"."+name.Name] = true
						}
					}
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					declared[s.file.Name.Name+"."+name.Name] = true
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					declared[receiver(n)+"."+n.Name.Name] = true
				}
			}
			return true
		})
	}
	count := 0
	for line := range strings.Lines(words) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, q := range quoted.FindAllString(cells[3], -1) {
			name := strings.Trim(q, "`")
			count++
			if strings.Contains(name, "/") {
				if _, err := os.Stat(name); err != nil {
					t.Errorf("the dictionary names %s, which does not exist", name)
				}
				continue
			}
			parts := strings.Split(strings.NewReplacer("(*", "", ")", "").Replace(name), ".")
			if len(parts) > 1 && !declared[strings.Join(parts[len(parts)-2:], ".")] {
				t.Errorf("the dictionary names %s, which does not exist", name)
			}
		}
	}
	if count < 60 {
		t.Errorf("found %d names: the search is broken", count)
	}
}

// hop is a step of a walk: a file, and the functions of it that are called.
var hop = regexp.MustCompile("^`([\\w/]+\\.go): (\\w+(?:, \\w+)*)`$")

// The walks of docs/architecture.md name functions that exist where they say.
func TestTheWalksNameWhatExists(t *testing.T) {
	_, walks, _ := strings.Cut(pages(t)["docs/architecture.md"], "\n## Three walks through the code\n")
	walks, _, _ = strings.Cut(walks, "\n## ")
	declared := map[string]bool{} // "path: function"
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[filepath.ToSlash(s.path)+": "+f.Name.Name] = true
			}
		}
	}
	count := 0
	for _, q := range quoted.FindAllString(walks, -1) {
		m := hop.FindStringSubmatch(q)
		if m == nil {
			continue
		}
		for name := range strings.SplitSeq(m[2], ", ") {
			count++
			if !declared[m[1]+": "+name] {
				t.Errorf("a walk names %s in %s, which does not exist", name, m[1])
			}
		}
	}
	if count < 80 {
		t.Errorf("found %d functions: the search is broken", count)
	}
}

// placed finds the functions that a package's doc says are in a file: "beat (leading.go)" or
// "stepDown in handover.go".
var placed = regexp.MustCompile(`(\w+) (?:in |\()(\w+\.go)\b`)

// The package docs name files that exist, and functions that are in them.
func TestPackageDocsPlaceFunctionsWhereTheyAre(t *testing.T) {
	files := map[string]bool{}    // "folder/file.go"
	declared := map[string]bool{} // "folder/file.go: function"
	all := sources(t)
	for _, s := range all {
		path := filepath.ToSlash(s.path)
		files[path] = true
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[path+": "+f.Name.Name] = true
			}
		}
	}
	count := 0
	for _, s := range all {
		if s.test || s.file.Doc == nil {
			continue
		}
		for _, m := range placed.FindAllStringSubmatch(strings.Join(strings.Fields(s.file.Doc.Text()), " "), -1) {
			name, file := m[1], path.Join(s.folder, m[2])
			if !files[file] {
				t.Errorf("the doc of %s names %s, which does not exist", s.folder, m[2])
				continue
			}
			if !declared[file+": "+name] && declaredIn(all, s.folder, name) {
				t.Errorf("the doc of %s places %s in %s", s.folder, name, m[2])
			}
			count++
		}
	}
	if count < 20 {
		t.Errorf("found %d places: the search is broken", count)
	}
}

// declaredIn reports whether a package has a function of that name.
func declaredIn(all []source, folder, name string) bool {
	return slices.ContainsFunc(all, func(s source) bool {
		return s.folder == folder && slices.ContainsFunc(s.file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Name.Name == name
		})
	})
}

func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

var (
	namedTest    = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)\\w+)(…?)`")
	namedMutants = regexp.MustCompile("mutants? ((?:`[a-z0-9…-]+`(?:, | and )?)+)")
)

// The pages and the list of bugs name only tests and mutants that exist; "…" is any text at the end
// of a name.
func TestThePagesNameTestsAndMutantsThatExist(t *testing.T) {
	bugs, err := os.ReadFile("testbed/bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	all["testbed/bugs.md"] = string(bugs)
	delete(all, "CHANGELOG.md") // it names former tests too
	var tests []string
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				tests = append(tests, f.Name.Name)
			}
		}
	}
	count := 0
	for name, text := range all {
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			count++
			if !slices.ContainsFunc(tests, func(test string) bool { return test == m[1] || m[2] != "" && strings.HasPrefix(test, m[1]) }) {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
		}
		for _, m := range namedMutants.FindAllStringSubmatch(text, -1) {
			for _, q := range quoted.FindAllString(m[1], -1) {
				count++
				pattern := strings.ReplaceAll(strings.Trim(q, "`"), "…", "*")
				if files, err := filepath.Glob("testbed/mutants/testdata/" + pattern + ".txtar"); err != nil || len(files) == 0 {
					t.Errorf("%s names the mutant %s, which does not exist", name, q)
				}
			}
		}
	}
	if count < 300 {
		t.Errorf("found %d names: the search is broken", count)
	}
}
