package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/settings"
)

// maxConfigFile bounds a configuration file, in bytes.
const maxConfigFile = 64 << 10

// badFile is a configuration error at a line of a file. If line is 0, it is about the whole file.
func badFile(path string, line int, hint, format string, args ...any) error {
	where := path
	if line > 0 {
		where = fmt.Sprintf("%s:%d", path, line)
	}
	return &settings.Error{Problem: where + ": " + fmt.Sprintf(format, args...), Hint: hint}
}

// reader reads the text of a configuration file, and goes on after a mistake.
type reader struct {
	*gathered
	path  string
	wrong []error
}

// valueReader reads the value at a key. The key is a full path, such as access.admin.users.
type valueReader func(key string, value *yaml.Node)

// readText reads the settings of a YAML text, and returns all mistakes in it. An unknown key, a repeated
// key or a value of the wrong type is a mistake: an agent that does not start is better than one that
// silently ignores a setting.
func (g *gathered) readText(path string, text []byte) []error {
	root, err := parseFile(path, text)
	if err != nil {
		return []error{err}
	}
	if root == nil {
		return nil
	}
	r := reader{gathered: g, path: path}
	keys := map[string]valueReader{accessKey: r.access, electionsKey: r.elections}
	for _, s := range settings.All() {
		keys[s.Name] = r.setting(s)
	}
	ofDefault := keys["check"]
	keys["check"] = func(key string, value *yaml.Node) {
		if value.Kind == yaml.ScalarNode {
			ofDefault(key, value)
		} else {
			r.check(&g.config.HostCheck)(key, value)
		}
	}
	r.fields("", root, keys)
	return r.wrong
}

func (r *reader) refuse(key, hint, format string, args ...any) {
	r.wrong = append(r.wrong, &settings.Error{Problem: r.source[key] + ": " + fmt.Sprintf(format, args...), Hint: hint})
}

// fields reads a mapping with fixed keys. `of` is the mapping's own full key, empty for the whole file.
func (r *reader) fields(of string, value *yaml.Node, keys map[string]valueReader) {
	names := slices.Sorted(maps.Keys(keys))
	form := "its keys are " + strings.Join(names, ", ") + ", each with a value"
	if of == "" {
		form = "the keys are the names of the flags of `doyen agent`"
	}
	r.each(of, value, form, func(name string) (do valueReader, hint string) {
		if near := nearest(strings.ToLower(strings.ReplaceAll(name, "_", "-")), names); near != "" {
			return keys[name], fmt.Sprintf("did you mean %q?", near)
		}
		return keys[name], form
	})
}

// each reads a mapping. find returns the reader for a key's value. For an unknown key, it returns nil and a
// hint.
func (r *reader) each(of string, value *yaml.Node, form string, find func(name string) (do valueReader, hint string)) {
	if value.Kind != yaml.MappingNode {
		r.refuse(of, form, "has no settings")
		return
	}
	seen := map[string]string{} // by key: a key may contain dots, so two keys can have the same full name
	for n := 0; n < len(value.Content); n += 2 {
		key, value := value.Content[n], value.Content[n+1]
		full, where := key.Value, ""
		if full == access.Rest && of != electionsKey {
			full = strconv.Quote(full) // package access writes the name in this way
		}
		if of != "" {
			full, where = of+"."+full, " in "+of
		}
		do, hint := find(key.Value)
		switch earlier := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode || do == nil:
			r.wrong = append(r.wrong, badFile(r.path, key.Line, hint, "unknown key %q%s", key.Value, where))
		case earlier != "":
			r.wrong = append(r.wrong, badFile(r.path, key.Line, "keep one of them", "%s is given twice, before at %s", full, strings.TrimSuffix(earlier, ": "+full)))
		default:
			seen[key.Value] = fmt.Sprintf("%s:%d: %s", r.path, key.Line, full)
			r.source[full] = seen[key.Value]
			do(full, value)
		}
	}
}

func (r *reader) setting(s settings.Setting) valueReader {
	return func(key string, value *yaml.Node) {
		if err := take(&r.config, s, value); err != nil {
			r.refuse(key, "", "%v", err)
		}
	}
}

// value returns a reader that stores a value in `to`, which points to one of the types of settings.
func (r *reader) value(to any) valueReader {
	return r.setting(settings.Setting{Field: func(*settings.Config) any { return to }})
}

func positive[T int | time.Duration](r *reader, to *T) valueReader {
	return func(key string, value *yaml.Node) {
		known := len(r.wrong)
		if r.value(to)(key, value); *to <= 0 && len(r.wrong) == known {
			r.refuse(key, "", "%q is not above 0", value.Value)
		}
	}
}

// loadFile reads a file. It refuses a file that is not regular: reading it may never end.
func loadFile(path string) ([]byte, error) {
	if strings.Contains(path, "://") {
		return nil, &settings.Error{Flag: "config", Problem: path + " is a URL", Hint: "only a file on this host can be read"}
	}
	const hint = "name a YAML file, or omit --config and DOYEN_CONFIG"
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(path + " is not a regular file")
	}
	abs, unknown := filepath.Abs(path)
	if err = cmp.Or(err, unknown); err != nil {
		return nil, &settings.Error{Flag: "config", Problem: err.Error(), Hint: hint}
	}
	if err := settings.CheckFile("config", abs); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &settings.Error{Flag: "config", Problem: err.Error(), Hint: "make it readable for the agent's user"}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, &settings.Error{Flag: "config", Problem: err.Error()}
	}
	if len(text) > maxConfigFile {
		return nil, badFile(path, 0, "is it the right file?", "longer than %d bytes", maxConfigFile)
	}
	return text, nil
}

// parseFile returns the mapping that the file contains, or nil if the file is empty.
func parseFile(path string, text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, badFile(path, 0, "", "not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, badFile(path, root.Line, "write one setting per line, such as `name: a`", "not a list of settings")
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, badFile(path, 0, "keep one", "holds more than one YAML document")
	}
	return root, nil
}

// take stores a YAML value in the configuration, if it has the setting's type.
func take(c *settings.Config, s settings.Setting, value *yaml.Node) error {
	field := s.Field(c)
	if value.Kind == yaml.AliasNode {
		return errors.New("aliases can't be used here; write the value out")
	}
	if list, ok := field.(*[]string); ok && value.Kind == yaml.SequenceNode {
		*list = nil
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode || item.Tag != "!!str" {
				return fmt.Errorf("line %d: an element is not text; put it in quotes", item.Line)
			}
			*list = append(*list, item.Value)
		}
		return nil
	}
	if value.Kind != yaml.ScalarNode {
		return errors.New("is not a single value")
	}
	if value.Tag == "!!null" {
		return errors.New("has no value; remove the key for the default")
	}
	wanted, advice := "!!str", "put it in quotes"
	if s.Name == "http" { // YAML reads a port without a host as a number
		advice = settings.HTTPHint
	}
	switch field.(type) {
	case *bool:
		wanted, advice = "!!bool", "write true or false"
	case *int:
		wanted, advice = "!!int", "write an integer, without quotes"
	case *time.Duration:
		advice = "write a duration with its unit, such as 200ms or 1.2s"
	case *[]string:
		advice = "write a list, such as [a, b, c]"
	}
	if value.Tag != wanted && !slices.Contains(s.Choices, value.Value) { // a mode looks like a number to YAML
		return fmt.Errorf("%q has the wrong type; %s", value.Value, advice)
	}
	return s.Set(c, value.Value)
}
