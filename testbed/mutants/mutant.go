package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

type Mutant struct {
	Name   string
	Rule   string // rule or guarantee that it breaks, as named in docs/guarantees.md
	Breaks string // a description
	Where  string // the package whose tests should notice it, such as "quorum"
	Edits  []Edit
}

// Edit replaces an expression or statements of one declaration. It does not depend on the file or
// the layout of the code: a mutant still applies when code around it changes or moves within its
// package.
type Edit struct {
	Package  string // such as "agent/store"
	Within   string // a function, "Type.method", or the name of a type, variable or constant; "import"
	Old, New string // Old occurs exactly once in Within; if Old is empty, New begins the function
}

const extension = ".txtar"

// Read returns the mutants of a directory, sorted by name.
func Read(dir fs.FS) ([]Mutant, error) {
	names, err := fs.Glob(dir, "*"+extension)
	if err != nil {
		return nil, fmt.Errorf("list mutants: %w", err)
	}
	if len(names) == 0 {
		return nil, errors.New("list mutants: there are none")
	}
	var all []Mutant
	for _, name := range names { // Glob has sorted them
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read mutant: %w", err)
		}
		m, err := parse(strings.TrimSuffix(name, extension), data)
		if err != nil {
			return nil, fmt.Errorf("read mutant %s: %w", name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// parse reads a head of "key: value" lines, and then the edits of each declaration.
func parse(name string, data []byte) (Mutant, error) {
	m := Mutant{Name: name}
	archive := txtar.Parse(data)
	for line := range strings.Lines(string(archive.Comment)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case found && key == "rule":
			m.Rule = value
		case found && key == "breaks":
			m.Breaks = value
		case found && key == "where":
			m.Where = value
		default:
			return m, fmt.Errorf("%q in its head is neither rule, breaks nor where", strings.TrimSpace(line))
		}
	}
	if m.Rule == "" || m.Breaks == "" || m.Where == "" {
		return m, errors.New("its head must say rule, breaks and where, each with a colon behind it")
	}
	for _, f := range archive.Files {
		edits, err := parseEdits(f.Name, string(f.Data))
		if err != nil {
			return m, err
		}
		m.Edits = append(m.Edits, edits...)
	}
	if len(m.Edits) == 0 {
		return m, errors.New("it changes nothing")
	}
	return m, nil
}

// parseEdits reads the edits of one declaration, which are separated by a line @@.
func parseEdits(place, text string) ([]Edit, error) {
	pkg, within, _ := strings.Cut(place, " ")
	if within == "" {
		return nil, fmt.Errorf("%q names a package, and not what in it is changed: a function, Type.method, a type, a variable or a constant", place)
	}
	var edits []Edit
	e := Edit{Package: path.Clean(pkg), Within: within}
	end := func() error {
		if e.Old == e.New {
			return fmt.Errorf("an edit of %s changes nothing", place)
		}
		edits = append(edits, e)
		e = Edit{Package: e.Package, Within: within}
		return nil
	}
	for line := range strings.Lines(text) {
		if line == "@@\n" {
			if err := end(); err != nil {
				return nil, err
			}
			continue
		}
		if line == "\n" {
			line = " \n" // an empty line that stays
		}
		switch mark, rest := line[0], line[1:]; mark {
		case '-':
			e.Old += rest
		case '+':
			e.New += rest
		case ' ':
			e.Old += rest
			e.New += rest
		default:
			return nil, fmt.Errorf("a line of an edit of %s starts with neither -, + nor a space: %q", place, line)
		}
	}
	return edits, end()
}

// Apply returns the changed content of each file, by its slash-separated name. It is an error
// if what an edit replaces is missing, or occurs more than once.
func (m Mutant) Apply(tree fs.FS) (map[string][]byte, error) {
	changed := map[string][]byte{}
	for _, e := range m.Edits {
		names, err := sources(tree, e.Package)
		if err != nil {
			return nil, fmt.Errorf("apply %s: %w", m.Name, err)
		}
		found, place := []span{}, ""
		for _, name := range names {
			data, known := changed[name]
			if !known {
				if data, err = fs.ReadFile(tree, name); err != nil {
					return nil, fmt.Errorf("apply %s: %w", m.Name, err)
				}
			}
			here, err := e.find(data)
			if err != nil {
				return nil, fmt.Errorf("apply %s: %w", m.Name, err)
			}
			if len(here) > 0 {
				found, place = append(found, here...), name
			}
			if len(found) == 1 && place == name {
				changed[name] = here[0].replace(data, e)
			}
		}
		if len(found) != 1 {
			return nil, fmt.Errorf("apply %s: %s of %s has this %d times, not once:\n%s", m.Name, e.Within, e.Package, len(found), e.Old)
		}
	}
	return changed, nil
}

func sources(tree fs.FS, pkg string) ([]string, error) {
	names, err := fs.Glob(tree, pkg+"/*.go")
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") }), wrap.Error(err, "list the files of %s", pkg)
}

// span is a part of a file, in bytes.
type span struct{ from, to int }

func (s span) replace(file []byte, e Edit) []byte {
	text := strings.TrimSuffix(e.New, "\n")
	if e.Old == "" {
		text = "\n" + e.New
	}
	return slices.Concat(file[:s.from], []byte(text), file[s.to:])
}

// find returns the places in a file that the edit would replace.
func (e Edit) find(file []byte) ([]span, error) {
	if !bytes.Contains(file, []byte(e.Within[strings.LastIndexByte(e.Within, '.')+1:])) {
		return nil, nil // nothing to find: save the time that parsing takes
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "", file, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []span
	old := words([]byte(e.Old))
	for _, d := range declarations(parsed, e.Within) {
		if f, ok := d.(*ast.FuncDecl); ok && len(old) == 0 {
			start := fset.Position(f.Body.Lbrace).Offset + 1
			found = append(found, span{start, start})
			continue
		}
		start := fset.Position(d.Pos()).Offset
		in := words(file[start:fset.Position(d.End()).Offset])
		for i := range in {
			if len(old) > 0 && i+len(old) <= len(in) && slices.EqualFunc(in[i:i+len(old)], old, word.same) {
				found = append(found, span{start + in[i].from, start + in[i+len(old)-1].to})
			}
		}
	}
	return found, nil
}

// declarations returns what a file declares by a name.
func declarations(file *ast.File, name string) (found []ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		declared := ""
		switch n := n.(type) {
		case *ast.FuncDecl:
			declared = n.Name.Name
			if n.Recv != nil {
				of, _, _ := strings.Cut(types.ExprString(n.Recv.List[0].Type), "[")
				declared = strings.TrimPrefix(of, "*") + "." + declared
			}
		case *ast.TypeSpec:
			declared = n.Name.Name
		case *ast.ValueSpec:
			declared = n.Names[0].Name
		case *ast.ImportSpec:
			declared = "import"
		case *ast.File, *ast.GenDecl:
			return true
		}
		if declared == name {
			found = append(found, n)
		}
		return false
	})
	return found
}

// word is a token of Go. Comments are not words, and neither are tokens that depend only on the layout.
type word struct {
	text     string
	from, to int // in bytes
}

func (w word) same(other word) bool { return w.text == other.text }

func words(code []byte) (all []word) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(code))
	s.Init(file, code, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		last := len(all) - 1
		if closes := tok == token.EOF || tok == token.RPAREN || tok == token.RBRACE || tok == token.RBRACK; closes && last >= 0 &&
			(all[last].text == ";" || all[last].text == ",") {
			all = all[:last] // the ; or , is there only because of a line break
		}
		if tok == token.EOF {
			return all
		}
		w := word{text: tok.String(), from: file.Offset(pos), to: file.Offset(pos)}
		if tok.IsLiteral() {
			w.text = lit
		}
		if tok != token.SEMICOLON { // a semicolon may be a line break, without text
			w.to += len(w.text)
		}
		all = append(all, w)
	}
}
