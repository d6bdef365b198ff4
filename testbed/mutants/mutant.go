package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

type Mutant struct {
	Name   string
	Rule   string // rule or guarantee that it breaks, as named in docs/guarantees.md
	Breaks string // a description
	Where  string // the package whose tests should notice it, such as "quorum"
	Edits  []Edit
}

// Edit replaces an expression or statements of one declaration. Which file has the
// declaration, and how the code is laid out, makes no difference: a mutant still applies when
// code around it changes or moves within its package.
type Edit struct {
	Package  string // such as "agent/store"
	Within   string // a function, "Type.method", or the name of a type, variable or constant; "import"
	Old, New string // Old occurs exactly once in it; if it is empty, New begins the function
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

// parse reads a head of "key: value" lines, and then the edits of each package.
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
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", pkg, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") }), nil
}
