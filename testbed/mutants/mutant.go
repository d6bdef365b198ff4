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

// Edit replaces whole lines of one package, in whichever file they are. So a mutant still
// applies when code moves within its package.
type Edit struct {
	Package  string // such as "agent/store"
	Old, New string // whole lines; Old occurs exactly once in the package, without its tests
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

// parseEdits reads one package's edits, which are separated by a line @@.
func parseEdits(pkg, text string) ([]Edit, error) {
	var edits []Edit
	e := Edit{Package: path.Clean(pkg)}
	end := func() error {
		switch {
		case e.Old == e.New:
			return fmt.Errorf("an edit of %s changes nothing", e.Package)
		case e.Old == "":
			return fmt.Errorf("an edit of %s does not name a place", e.Package)
		}
		edits = append(edits, e)
		e = Edit{Package: e.Package}
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
			return nil, fmt.Errorf("a line of an edit of %s starts with neither -, + nor a space: %q", e.Package, line)
		}
	}
	return edits, end()
}

// Apply returns the changed content of each file, by its slash-separated name. It is an error
// if the lines of an edit are missing, or occur more than once.
func (m Mutant) Apply(tree fs.FS) (map[string][]byte, error) {
	texts := map[string]string{} // of all files; each starts with a newline, so that whole lines are found
	changed := map[string][]byte{}
	for _, e := range m.Edits {
		names, err := sources(tree, e.Package)
		if err != nil {
			return nil, fmt.Errorf("apply %s: %w", m.Name, err)
		}
		found, place := 0, ""
		for _, name := range names {
			if _, known := texts[name]; !known {
				data, err := fs.ReadFile(tree, name)
				if err != nil {
					return nil, fmt.Errorf("apply %s: %w", m.Name, err)
				}
				texts[name] = "\n" + string(data)
			}
			if n := strings.Count(texts[name], "\n"+e.Old); n > 0 {
				found, place = found+n, name
			}
		}
		if found != 1 {
			return nil, fmt.Errorf("apply %s: %s has these lines %d times, not once:\n%s", m.Name, e.Package, found, e.Old)
		}
		texts[place] = strings.Replace(texts[place], "\n"+e.Old, "\n"+e.New, 1)
		changed[place] = []byte(texts[place][1:])
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
