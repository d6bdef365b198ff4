package main

import (
	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/agent/access"
)

// accessKey is the key of a configuration file for the rules about who may do what over the socket.
// There is no flag and no variable for it:
//
//	access:
//	  admin: {groups: [doyen-admin]}
//	  max-candidacies: 64
//	  elections:
//	    payments: {campaign: {users: [pay]}, hand-over: {groups: [pay-ops]}, max-priority: 200}
//	    "*": {campaign: {groups: [doyen]}}
const accessKey = "access"

func (r *reader) access(key string, value *yaml.Node) {
	to := &r.config.Access
	r.fields(key, value, map[string]valueReader{
		"admin":           r.list(&to.Admin),
		"max-candidacies": positive(r, &to.MaxCandidacies),
		"elections": func(key string, value *yaml.Node) {
			if value.Kind == yaml.MappingNode && len(value.Content) == 0 {
				r.refuse(key, `name an election, or "*" for all, or remove the key for the default`, "names no elections")
			}
			to.Elections = map[string]access.Rules{}
			r.each(key, value, "see `access` in docs/operations.md", func(name string) (valueReader, string) {
				return func(key string, value *yaml.Node) { to.Elections[name] = r.rules(key, value) }, ""
			})
		},
	})
}

func (r *reader) rules(key string, value *yaml.Node) (rules access.Rules) {
	r.fields(key, value, map[string]valueReader{
		"campaign":  r.list(&rules.Campaign),
		"hand-over": r.list(&rules.HandOver),
		"max-priority": func(key string, value *yaml.Node) {
			rules.MaxPriority = new(int)
			r.value(rules.MaxPriority)(key, value)
		},
	})
	return rules
}

func (r *reader) list(to **access.List) valueReader {
	return func(key string, value *yaml.Node) {
		*to = &access.List{}
		r.fields(key, value, map[string]valueReader{"groups": r.names(&(*to).Groups), "users": r.names(&(*to).Users)})
	}
}

func (r *reader) names(to *[]string) valueReader {
	return func(key string, value *yaml.Node) {
		*to = []string{}
		if value.Kind != yaml.SequenceNode {
			r.refuse(key, "write a list, such as [doyen, 1001]; [] means nobody", "is not a list")
		}
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode || item.Value == "" || item.Tag != "!!str" && item.Tag != "!!int" {
				r.refuse(key, "write names or numbers, such as [doyen, 1001]", "%q is not a name or a number", item.Value)
			}
			*to = append(*to, item.Value)
		}
	}
}
