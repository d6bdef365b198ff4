package bench

import (
	"context"
	"slices"
)

// part is something that can be measured by itself.
type part struct {
	name    string
	measure func(*bench, context.Context) error
	when    when
}

// when says which runs a part belongs to if nobody names the parts.
type when uint8

const (
	onRequest when = iota
	alone          // those of one cluster
	always
	compared // those of several
)

// parts are all of them, in the order in which they are measured.
func parts() []part {
	return []part{
		{"cold", (*bench).cold, always},
		{"kill", (*bench).kill, always},
		{"local", (*bench).local, alone},
		{"handover", (*bench).handover, always},
		{"overlap", (*bench).overlap, alone},
		{"idle", (*bench).idle, always},
		{"query", (*bench).query, alone},
		{"watchers", (*bench).watchers, alone},
		{"size", (*bench).size, alone},
		{"traffic", (*bench).traffic, compared},
		{"cut", (*bench).cut, compared},
		{"messages", (*bench).messages, compared},
		{"overhead", (*bench).overhead, onRequest},
		{"again-kill", (*bench).againKill, onRequest},
		{"again-handover", (*bench).againHandover, onRequest},
		{"programs", (*bench).programs, onRequest},
		{"many-elections", (*bench).manyElections, onRequest},
		{"load", (*bench).load, onRequest},
		{"readers", (*bench).readers, onRequest},
		{"at-once", (*bench).atOnce, onRequest},
	}
}

// Parts are the names of what can be measured by itself.
func Parts() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// wanted reports whether the part belongs to a run with these options, of one
// cluster or of several.
func (p part) wanted(o Options, several bool) bool {
	switch {
	case len(o.Only) > 0:
		return slices.Contains(o.Only, p.name)
	case several:
		return p.when == always || p.when == compared
	}
	return p.when == always || p.when == alone
}
