package main

import (
	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/agent/access"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
)

// electionsKey is the key of a configuration file for the settings of single elections, and of all others
// ("*"). It has no flag and no variable:
//
//	elections:
//	  payments:
//	    on-change: /usr/local/libexec/payments-hook
//	    expected: true
//	  "*":
//	    on-change: /usr/local/libexec/any-hook
const electionsKey = "elections"

func (r *reader) elections(key string, value *yaml.Node) {
	r.config.Elections = map[string]settings.ElectionConfig{}
	r.each(key, value, "write `elections: {payments: {on-change: CMD}}`", func(name string) (valueReader, string) {
		return func(key string, value *yaml.Node) {
			if !election.ValidName(name) && name != settings.EveryOther {
				r.refuse(key, nameRule, "%q is not a valid election name", name)
				return
			}
			r.config.Elections[name] = r.election(key, value)
		}, ""
	})
}

func (r *reader) election(key string, value *yaml.Node) (e settings.ElectionConfig) {
	r.fields(key, value, map[string]valueReader{
		"check":    r.check(&e.Check),
		"expected": r.value(&e.Expected),
		"on-change": func(key string, value *yaml.Node) {
			if r.value(&e.OnChange)(key, value); value.Tag == "!!str" && e.OnChange == "" {
				r.refuse(key, "remove the election to run the command of all elections; write `true` to run nothing", "is empty")
			}
		},
	})
	if value.Kind == yaml.MappingNode && len(value.Content) == 0 {
		r.refuse(key, "write `on-change: CMD` or `expected: true`, or remove the election", "has no settings")
	}
	return e
}

func (r *reader) check(to *health.Check) valueReader {
	return func(key string, value *yaml.Node) {
		known := len(r.wrong)
		r.fields(key, value, map[string]valueReader{
			"command": r.value(&to.Command), "every": positive(r, &to.Every), "timeout": positive(r, &to.Timeout),
			"fall": positive(r, &to.Fall), "rise": positive(r, &to.Rise), "keep-last": r.value(&to.KeepLast),
		})
		if to.Command == "" && len(r.wrong) == known {
			r.refuse(key, "write `check: {command: CMD, every: 2s, timeout: 2s, fall: 3, rise: 2}`; all but the command may be omitted", "has no command")
		}
	}
}

// accessKey is the key of a configuration file for the rules about who may do what over the socket. It has no
// flag and no variable:
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
