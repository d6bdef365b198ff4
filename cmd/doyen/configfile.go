package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/agent/settings"
)

// maxConfigFile bounds a configuration file, in bytes.
const maxConfigFile = 64 << 10

// badFile is a configuration error at a line of a file; line 0 means the whole file.
func badFile(path string, line int, hint, format string, args ...any) error {
	where := path
	if line > 0 {
		where = fmt.Sprintf("%s:%d", path, line)
	}
	return &settings.Error{Problem: where + ": " + fmt.Sprintf(format, args...), Hint: hint}
}

// readText reads the settings of a YAML text, and returns all that is wrong with it. An unknown
// key, the same key twice or a value of another type is an error: an agent that does not start
// is better than one that silently ignores a setting.
func (g *gathered) readText(path string, load func() ([]byte, error)) (wrong []error) {
	text, err := load()
	if err != nil {
		return []error{err}
	}
	root, err := parseFile(path, text)
	if err != nil {
		return []error{err}
	}
	if root == nil {
		return nil
	}
	for n := 0; n < len(root.Content); n += 2 {
		if err := g.readSetting(path, root.Content[n], root.Content[n+1]); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

func (g *gathered) readSetting(path string, key, value *yaml.Node) error {
	if section := map[string]func(string, *yaml.Node, *yaml.Node) error{
		electionsKey: g.readElections, accessKey: g.readAccess,
	}[key.Value]; section != nil {
		return section(path, key, value)
	}
	names := []string{electionsKey, accessKey}
	for _, s := range settings.All() {
		if names = append(names, s.Name); s.Name != key.Value || key.Kind != yaml.ScalarNode {
			continue
		}
		if earlier := g.source[s.Name]; earlier != "" {
			return badFile(path, key.Line, "keep one of them", "%q is given twice, before at %s", s.Name, strings.TrimSuffix(earlier, ": "+s.Name))
		}
		g.source[s.Name] = fmt.Sprintf("%s:%d: %s", path, key.Line, s.Name)
		if s.Name == "check" && value.Kind != yaml.ScalarNode { // of the host; a text is the flag's
			var err error
			g.config.HostCheck, err = g.readCheck(path, s.Name, value)
			return err
		}
		if err := take(&g.config, s, value); err != nil {
			return &settings.Error{Problem: g.source[s.Name] + ": " + err.Error()}
		}
		return nil
	}
	return badFile(path, key.Line, unknownKeyHint(key.Value, names), "unknown key %q", key.Value)
}

func unknownKeyHint(key string, names []string) string {
	if near := nearest(strings.ToLower(strings.ReplaceAll(key, "_", "-")), names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "the keys are the names of the flags of `doyen agent`"
}

// loadFile reads a file. It refuses one that is not regular: that could be endless, or keep
// the reader waiting.
func loadFile(path string) ([]byte, error) {
	if strings.Contains(path, "://") {
		return nil, &settings.Error{Flag: "config", Problem: path + " is a URL", Hint: "only a file on this host can be read"}
	}
	const hint = "name a YAML file, or omit --config and DOYEN_CONFIG"
	info, err := os.Stat(path)
	if err != nil {
		return nil, &settings.Error{Flag: "config", Problem: err.Error(), Hint: hint}
	}
	if !info.Mode().IsRegular() {
		return nil, &settings.Error{Flag: "config", Problem: path + " is not a regular file", Hint: hint}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
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

// parseFile returns the mapping that the file holds, nil if the file is empty.
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

// take puts a YAML value into the configuration if it is of the setting's type.
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
	if s.Name == "http" { // YAML takes a port without a host for a number
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
	if value.Tag != wanted && !slices.Contains(s.Choices, value.Value) { // a mode looks like a number
		return fmt.Errorf("%q has the wrong type; %s", value.Value, advice)
	}
	return s.Set(c, value.Value)
}
