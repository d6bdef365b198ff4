package bench

import (
	"context"
	"runtime"
	"slices"
	"syscall"

	"github.com/doyen-election/doyen/testbed/hosts"
)

type part struct {
	name    string
	when    when
	measure func(*bench, context.Context) error
	lacks   func(*bench) string // returns why it can't be measured here, or ""; nil: it can
}

// when tells to which runs a part belongs if --only names no parts.
type when uint8

const (
	onRequest when = iota
	alone          // in runs on one cluster
	always
	compared // in runs on several clusters
)

// parts returns all parts, in the order in which they are measured.
func parts() []part {
	return []part{
		{"cold", always, (*bench).cold, nil},
		{"kill", always, rounds(experiment{name: "Takeover", faults: []string{"kill"}, tenths: 10}), nil},
		{"local", alone, rounds(experiment{name: "Takeover", profile: "local", faults: []string{"kill"}, tenths: 10}), nil},
		{"handover", always, rounds(experiment{name: "Takeover", faults: []string{"resign", "transfer", "sigterm"}, tenths: 3}), nil},
		{"overlap", alone, rounds(experiment{name: "Overlap", faults: []string{"kill", "freeze", "freeze-for-a-lease"}, tenths: 7, hasty: true}), nil},
		{"idle", always, (*bench).idle, needLinux},
		{"query", alone, (*bench).query, nil},
		{"watchers", alone, (*bench).watchers, nil},
		{"size", alone, (*bench).size, nil},
		{"traffic", compared, (*bench).idle, needLinux},
		{"cut", compared, rounds(experiment{name: "Takeover", faults: []string{"cut"}, tenths: 3}), needNamespaces},
		{"messages", compared, rounds(experiment{name: "Election", faults: []string{"kill", "resign"}, tenths: 1, count: true}), nil},
		{"again-kill", onRequest, rounds(experiment{name: "Takeover", faults: []string{"kill"}, tenths: 10, again: true}), nil},
		{"again-handover", onRequest, rounds(experiment{name: "Takeover", faults: []string{"sigterm", "resign", "transfer"}, tenths: 10, again: true}), nil},
		{"life-kill", onRequest, lives("Life/end=kill", Point{}, 10, signalled(syscall.SIGKILL)), needLinux},
		{"life-panic", onRequest, lives("Life/end=panic", Point{}, 3, signalled(syscall.SIGABRT)), needLinux},
		{"life-local", onRequest, lives("Life/end=kill", Point{Profile: "local"}, 10, signalled(syscall.SIGKILL)), needLinux},
		{"life-hang", onRequest, lives("Life/end=hang", Point{}, 5, signalled(syscall.SIGSTOP)), needLinux},
		{"restart", onRequest, lives("Restart", Point{Agents: rolling}, 2, restarted), needLinux},
		{"keeper", onRequest, (*bench).keepers, needLinux},
		{"programs", onRequest, (*bench).programs, nil},
		{"many-elections", onRequest, (*bench).manyElections, needLinux},
		{"load", onRequest, (*bench).load, nil},
		{"readers", onRequest, (*bench).readers, nil},
		{"at-once", onRequest, (*bench).atOnce, nil},
	}
}

func Parts() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

func (p part) wanted(o Options) bool {
	switch {
	case len(o.Only) > 0:
		return slices.Contains(o.Only, p.name)
	case len(o.Points) > 1:
		return p.when == always || p.when == compared
	}
	return p.when == always || p.when == alone
}

func needLinux(*bench) string {
	if runtime.GOOS != "linux" {
		return "what agents cost: that takes Linux"
	}
	return ""
}

func needNamespaces(b *bench) string {
	if b.o.Net != hosts.Namespaces {
		return "the leader cut off: hosts that share a loopback interface can't be cut off, see --netns"
	}
	return ""
}
