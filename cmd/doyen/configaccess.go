package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/agent/access"
)

// accessKey is the part of a configuration file that says who may do what over
// the socket. It has no flag and no variable:
//
//	access:
//	  admin: {groups: [doyen-admin]}
//	  max-candidacies: 64
//	  elections:
//	    payments: {campaign: {users: [pay]}, hand-over: {groups: [pay-ops]}, max-priority: 200}
//	    "*": {campaign: {groups: [doyen]}}
const accessKey = "access"

// accessReader reads that section, and remembers where each part of the section is.
type accessReader struct {
	g    *gathered
	path string
}

// readAccess reads the section.
func (g *gathered) readAccess(path string, key, value *yaml.Node) error {
	r := accessReader{g, path}
	c := &g.config.Access
	if g.source[accessKey] != "" {
		return badFile(path, key.Line, "keep one of them", "%q is given twice", accessKey)
	}
	g.source[accessKey] = fmt.Sprintf("%s:%d: %s", path, key.Line, accessKey)
	return r.each(accessKey, value, []string{"admin", "elections", "max-candidacies"}, func(full, name string, value *yaml.Node) error {
		var err error
		switch name {
		case "admin":
			c.Admin, err = r.list(full, value)
		case "max-candidacies":
			c.MaxCandidacies, err = r.number(full, value)
			if err == nil && c.MaxCandidacies < 1 {
				err = badFile(path, value.Line, "use 1 or more", "%s: %d is not a valid number of candidacies", full, c.MaxCandidacies)
			}
		default:
			c.Elections = map[string]access.Rules{}
			err = r.each(full, value, nil, func(full, election string, value *yaml.Node) error {
				c.Elections[election], err = r.rules(full, value)
				return err
			})
			if err == nil && len(c.Elections) == 0 {
				err = badFile(path, value.Line, `name an election, or "*" for all, or remove the key for the default`, "%s names no elections", full)
			}
		}
		return err
	})
}

// rules reads the rules of one election.
func (r accessReader) rules(key string, value *yaml.Node) (access.Rules, error) {
	var rules access.Rules
	err := r.each(key, value, []string{"campaign", "hand-over", "max-priority"}, func(full, name string, value *yaml.Node) error {
		var err error
		switch name {
		case "campaign":
			rules.Campaign, err = r.list(full, value)
		case "hand-over":
			rules.HandOver, err = r.list(full, value)
		default:
			var n int
			n, err = r.number(full, value)
			rules.MaxPriority = &n
		}
		return err
	})
	return rules, err
}

// list reads users and groups.
func (r accessReader) list(key string, value *yaml.Node) (*access.List, error) {
	var l access.List
	err := r.each(key, value, []string{"groups", "users"}, func(full, name string, value *yaml.Node) error {
		if value.Kind != yaml.SequenceNode {
			return badFile(r.path, value.Line, "write a list, such as [doyen, 1001]; [] means nobody", "%s is not a list", full)
		}
		to := &l.Groups
		if name == "users" {
			to = &l.Users
		}
		*to = []string{}
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode || item.Value == "" || item.Tag != "!!str" && item.Tag != "!!int" {
				return badFile(r.path, item.Line, "write names or numbers, such as [doyen, 1001]", "%s: %q is not a name or a number", full, item.Value)
			}
			*to = append(*to, item.Value)
		}
		return nil
	})
	return &l, err
}

func (r accessReader) number(key string, value *yaml.Node) (int, error) {
	n, err := strconv.Atoi(value.Value)
	if value.Kind != yaml.ScalarNode || value.Tag != "!!int" || err != nil {
		return 0, badFile(r.path, value.Line, "write an integer, without quotes", "%s: %q is not an integer", key, value.Value)
	}
	return n, nil
}

// each calls do for each entry of a mapping. It refuses a key that is given twice and, if
// known is not nil, one that known does not have.
func (r accessReader) each(of string, value *yaml.Node, known []string, do func(full, name string, value *yaml.Node) error) error {
	if value.Kind != yaml.MappingNode {
		hint := "see `access` in docs/operations.md"
		if known != nil {
			hint = "its keys are " + strings.Join(known, ", ") + ", each with a value"
		}
		return badFile(r.path, value.Line, hint, "%s has no settings", of)
	}
	for n := 0; n < len(value.Content); n += 2 {
		key, value := value.Content[n], value.Content[n+1]
		full := of + "." + key.Value
		if key.Value == access.Rest {
			full = of + "." + strconv.Quote(key.Value)
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return badFile(r.path, key.Line, "write a name", "a key in %s is not text", of)
		case known != nil && !slices.Contains(known, key.Value):
			return badFile(r.path, key.Line, unknownHint(key.Value, known), "unknown key %q in %s", key.Value, of)
		case r.g.source[full] != "":
			return badFile(r.path, key.Line, "keep one of them", "%s is given twice", full)
		}
		r.g.source[full] = fmt.Sprintf("%s:%d: %s", r.path, key.Line, full)
		if err := do(full, key.Value, value); err != nil {
			return err
		}
	}
	return nil
}

func unknownHint(key string, known []string) string {
	if near := nearest(key, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "its keys are " + strings.Join(known, ", ")
}
