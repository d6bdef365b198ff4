package main

import (
	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/health"
)

// electionsKey is the key of a configuration file for the settings of single elections, and of all others
// ("*"). There is no flag and no variable for it:
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
