package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
)

// electionsKey is the part of a configuration file with the settings of single elections,
// and of all others ("*"). It has no flag and no variable:
//
//	elections:
//	  payments:
//	    on-change: /usr/local/libexec/payments-hook
//	    expected: true
//	  "*":
//	    on-change: /usr/local/libexec/any-hook
const electionsKey = "elections"

// readElections reads the elections of a file.
func (g *gathered) readElections(path string, key, value *yaml.Node) error {
	if g.source[electionsKey] != "" {
		return badFile(path, key.Line, "keep one of them", "%q is given twice", electionsKey)
	}
	g.source[electionsKey] = fmt.Sprintf("%s:%d: %s", path, key.Line, electionsKey)
	const form = "write `elections: {payments: {on-change: CMD}}`"
	if value.Kind != yaml.MappingNode {
		return badFile(path, value.Line, form, "%q names no elections", electionsKey)
	}
	g.config.Elections = map[string]settings.ElectionConfig{}
	for n := 0; n < len(value.Content); n += 2 {
		name, own := value.Content[n], value.Content[n+1]
		switch _, twice := g.config.Elections[name.Value]; {
		case name.Kind != yaml.ScalarNode || !election.ValidName(name.Value) && name.Value != settings.EveryOther:
			return badFile(path, name.Line, "a name has 1 to 63 characters from a-z, 0-9, dot, dash and underscore, and starts with a letter or digit", "%q is not a valid election name", name.Value)
		case twice:
			return badFile(path, name.Line, "keep one of them", "the election %q is given twice", name.Value)
		case own.Kind != yaml.MappingNode:
			return badFile(path, own.Line, form, "the election %q has no settings", name.Value)
		}
		one, err := g.readElection(path, name.Value, own)
		if err != nil {
			return err
		}
		g.config.Elections[name.Value] = one
	}
	return nil
}

// readElection reads the settings of one election.
func (g *gathered) readElection(path, name string, own *yaml.Node) (settings.ElectionConfig, error) {
	var one settings.ElectionConfig
	for n := 0; n < len(own.Content); n += 2 {
		key, value := own.Content[n], own.Content[n+1]
		full := electionsKey + "." + name + "." + key.Value
		switch {
		case !slices.Contains(electionKeys, key.Value):
			return one, badFile(path, key.Line, unknownElectionHint(key.Value), "unknown key %q in the election %q", key.Value, name)
		case g.source[full] != "":
			return one, badFile(path, key.Line, "keep one of them", "%q is given twice in the election %q", key.Value, name)
		case key.Value == "check":
			g.source[full] = fmt.Sprintf("%s:%d: %s", path, key.Line, full)
			var err error
			if one.Check, err = g.readCheck(path, full, value); err != nil {
				return one, err
			}
			continue
		case key.Value == "expected":
			if value.Tag != "!!bool" || value.Decode(&one.Expected) != nil {
				return one, badFile(path, value.Line, "write true or false", "%q of the election %q is neither true nor false", key.Value, name)
			}
			g.source[full] = fmt.Sprintf("%s:%d: %s", path, key.Line, full)
			continue
		case value.Kind != yaml.ScalarNode || value.Tag != "!!str":
			return one, badFile(path, value.Line, "put the command in quotes", "%q of the election %q is not text", key.Value, name)
		case value.Value == "":
			return one, badFile(path, value.Line, "remove the election to run the command of all elections; write `true` to run nothing", "%q of the election %q is empty", key.Value, name)
		}
		g.source[full] = fmt.Sprintf("%s:%d: %s", path, key.Line, full)
		one.OnChange = value.Value
	}
	if len(own.Content) == 0 {
		return one, badFile(path, own.Line, "write `on-change: CMD` or `expected: true`, or remove the election", "the election %q has no settings", name)
	}
	return one, nil
}

func unknownElectionHint(key string) string {
	if near := nearest(key, electionKeys); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "the keys of an election are " + strings.Join(electionKeys, ", ")
}

var electionKeys = []string{"on-change", "expected", "check"}

// readCheck reads a health check.
func (g *gathered) readCheck(path, name string, value *yaml.Node) (k health.Check, err error) {
	const form = "write `check: {command: CMD, every: 2s, timeout: 2s, fall: 3, rise: 2}`; all but the command may be omitted"
	if value.Kind != yaml.MappingNode {
		return k, badFile(path, value.Line, form, "%q is not a check", name)
	}
	seen := map[string]bool{}
	for n := 0; n < len(value.Content); n += 2 {
		key, v := value.Content[n], value.Content[n+1]
		text := func(tag string, set func() error) error {
			switch {
			case seen[key.Value]:
				return badFile(path, key.Line, "keep one of them", "%q is given twice in %q", key.Value, name)
			case v.Kind != yaml.ScalarNode || v.Tag != tag || v.Value == "":
				return badFile(path, v.Line, form, "%q in %q is %q", key.Value, name, v.Value)
			}
			seen[key.Value] = true
			if err := set(); err != nil {
				return badFile(path, v.Line, form, "%q in %q: %v", key.Value, name, err)
			}
			return nil
		}
		duration := func(d *time.Duration) func() error {
			return func() error {
				parsed, err := time.ParseDuration(v.Value)
				if err == nil && parsed <= 0 {
					err = errors.New("it must be above 0")
				}
				*d = parsed
				return err
			}
		}
		number := func(i *int) func() error {
			return func() error {
				err := v.Decode(i)
				if err == nil && *i < 1 {
					err = errors.New("it must be above 0")
				}
				return err
			}
		}
		switch key.Value {
		case "command":
			err = text("!!str", func() error { k.Command = v.Value; return nil })
		case "every":
			err = text("!!str", duration(&k.Every))
		case "timeout":
			err = text("!!str", duration(&k.Timeout))
		case "fall":
			err = text("!!int", number(&k.Fall))
		case "rise":
			err = text("!!int", number(&k.Rise))
		default:
			err = badFile(path, key.Line, form, "unknown key %q in %q", key.Value, name)
		}
		if err != nil {
			return k, err
		}
	}
	if k.Command == "" {
		return k, badFile(path, value.Line, form, "%q has no command", name)
	}
	return k, nil
}

// checkValue is a check as it is written in JSON.
func checkValue(k health.Check) map[string]any {
	k = k.Resolved()
	return map[string]any{"command": k.Command, "every": k.Every.String(), "timeout": k.Timeout.String(), "fall": k.Fall, "rise": k.Rise}
}

// electionValues is the settings of single elections, as they are written in JSON.
func electionValues(c settings.Config) map[string]map[string]any {
	values := map[string]map[string]any{}
	for name, e := range c.Elections {
		values[name] = map[string]any{}
		if e.OnChange != "" {
			values[name]["on-change"] = e.OnChange
		}
		if e.Expected {
			values[name]["expected"] = true
		}
		if e.Check.Command != "" {
			values[name]["check"] = checkValue(e.Check)
		}
	}
	return values
}
