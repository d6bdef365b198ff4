package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// seen has what was seen of all elections.
type seen = *observe.Elections

// condition reads a condition: NAME [WORD…] [on|among HOST…] [of ELECTION].
func (w *world) condition(words []string) (condition, error) {
	if len(words) == 0 {
		return condition{}, errors.New("no condition is given")
	}
	of, words := option(words, "of")
	of = electionName(of)
	w.lab.Follow(of)
	name, words := words[0], words[1:]
	switch name {
	case "agree", "one-leader", "leader", "leads", "no-leader", "not-leading", "state":
		return w.ruling(name, words, of)
	case "quorum", "warning", "no-warning", "members", "connected", "candidates", "drained":
		return w.asked(name, words, of)
	case "exit", "log", "no-log":
		return w.processes(name, words)
	case "acting", "one-acting", "not-acting", "ended":
		return w.acting(name, words)
	}
	return condition{}, fmt.Errorf("there is no condition %q; they are in docs/testbed.md", name)
}

// ruling reads the conditions on leaders.
func (w *world) ruling(name string, words []string, of string) (condition, error) {
	value, hosts, err := w.scope(name, words)
	if err != nil {
		return condition{}, err
	}
	return condition{judge: func() (v verdict) {
		among := hosts
		if among == nil { // no host is named: use those that run
			among = w.running()
		}
		w.lab.Look(func(e seen) { v = judgeRuling(name, value, e.Of(of), among) })
		return v
	}}, nil
}

func judgeRuling(name, value string, t *observe.Tracker, among []string) verdict {
	switch name {
	case "agree", "one-leader", "leader":
		return agreement(t, among, value)
	case "leads":
		s := t.View(value)
		return verdict{s.Leads, s.Since, named(t, among)}
	case "state":
		return inState(t, among, value)
	}
	v := verdict{holds: true, saw: named(t, among)}
	for _, h := range among {
		s := t.View(h)
		if s.Leads || name == "no-leader" && s.Leader != "" || !s.Heard {
			v.holds = false
		}
		v.since = max(v.since, s.Since)
	}
	return v
}

// scope reads [VALUE] [on|among HOST…].
func (w *world) scope(name string, words []string) (value string, hosts []string, err error) {
	at := slices.IndexFunc(words, func(word string) bool { return word == "on" || word == "among" })
	if at >= 0 {
		if hosts, err = w.names(words[at+1:]); err != nil {
			return "", nil, err
		}
		words = words[:at]
	}
	wanted := 0
	if name == "leader" || name == "leads" || name == "state" {
		wanted = 1
	}
	if len(words) != wanted {
		return "", nil, fmt.Errorf("%s: got %q, want %d words, and then, if you like, on HOST…", name, strings.Join(words, " "), wanted)
	}
	if wanted == 0 {
		return "", hosts, nil
	}
	if name != "state" {
		if found, err := w.names(words); err != nil || len(found) != 1 {
			return "", nil, cmp.Or(err, fmt.Errorf("%q is not one host", words[0]))
		}
	}
	return words[0], hosts, nil
}

// agreement holds if all the hosts name the same leader in the same term, and the leader is one
// of them and reports that it leads.
func agreement(t *observe.Tracker, among []string, leader string) verdict {
	a, ok := t.Agreement(among)
	if ok && (leader == "" || a.Leader == leader) {
		return verdict{true, a.At, fmt.Sprintf("%s leads, term %d, reported by %s", a.Leader, a.Term, hosts.Short(among))}
	}
	return verdict{saw: named(t, among)}
}

func inState(t *observe.Tracker, among []string, state string) verdict {
	return ofEach(among, ", ", func(h string) verdict {
		s := t.View(h)
		return verdict{holds: s.State == state, saw: h + " is " + cmp.Or(s.State, "silent")}
	})
}

// ofEach joins the verdicts on all hosts. The result holds if all verdicts hold; its since is their latest.
func ofEach[H any](all []H, separator string, judge func(H) verdict) verdict {
	joined := verdict{holds: true}
	var saw []string
	for _, h := range all {
		v := judge(h)
		joined.holds, joined.since = joined.holds && v.holds, max(joined.since, v.since)
		saw = append(saw, v.saw)
	}
	joined.saw = strings.Join(saw, separator)
	return joined
}

// named describes which leader each host names.
func named(t *observe.Tracker, among []string) string {
	by := map[string][]string{}
	for _, h := range among {
		s := t.View(h)
		word := "names nobody"
		switch {
		case !s.Heard:
			word = "is silent"
		case s.Leads:
			word = fmt.Sprintf("leads term %d", s.Term)
		case s.Leader != "":
			word = fmt.Sprintf("names %s, term %d", s.Leader, s.Term)
		}
		by[word] = append(by[word], h)
	}
	var all []string
	for word, who := range by {
		all = append(all, hosts.Short(who)+" "+word)
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "no host runs"
	}
	return strings.Join(all, "; ")
}

const askTimeout = 2 * time.Second

// asked reads the conditions for which agents are asked: quorum STATE on HOST…, warning CODE on
// HOST…, no-warning CODE on HOST…, members N on HOST…, connected N on HOST…, candidates N on
// HOST…, drained on HOST….
func (w *world) asked(name string, words []string, of string) (condition, error) {
	at := slices.Index(words, "on")
	if at < 0 {
		return condition{}, fmt.Errorf("%s: on which hosts?", name)
	}
	targets, err := w.hostsOf(words[at+1:])
	if err != nil {
		return condition{}, err
	}
	value := strings.Join(words[:at], " ")
	if (value == "") != (name == "drained") {
		return condition{}, fmt.Errorf("%s: got %q before on", name, value)
	}
	return condition{asks: true, judge: func() verdict {
		return ofEach(targets, "; ", func(h *hosts.Host) verdict {
			found, holds := askHost(w.ctx, h, name, value, of)
			return verdict{holds: holds, saw: h.Name() + ": " + found}
		})
	}}, nil
}

func askHost(ctx context.Context, h *hosts.Host, name, value, of string) (found string, holds bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c := client.New(h.Config().Socket)
	defer c.Close()
	if name == "candidates" {
		e, err := c.Election(ctx, of, client.ElectionOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("candidates %s", hosts.Short(e.Candidates)), strconv.Itoa(len(e.Candidates)) == value
	}
	if name == "members" || name == "connected" {
		members, err := c.Members(ctx)
		if err != nil {
			return err.Error(), false
		}
		if name == "connected" {
			n := connected(members)
			return fmt.Sprintf("%d connected", n), strconv.Itoa(n) == value
		}
		alive := len(slices.DeleteFunc(members, func(m api.Member) bool { return m.Status != api.StatusAlive }))
		return fmt.Sprintf("%d alive", alive), strconv.Itoa(alive) == value
	}
	a, err := c.Agent(ctx)
	if err != nil {
		return err.Error(), false
	}
	codes := each.Of(a.Warnings, func(w api.Warning) string { return w.Code })
	switch name {
	case "quorum":
		return fmt.Sprintf("quorum %s, %d of %d voters reachable", a.Quorum.State, a.Quorum.Reachable, a.Quorum.Voters), a.Quorum.State == value
	case "drained":
		return fmt.Sprintf("draining %t", a.Draining), a.Draining
	}
	return "warnings: " + strings.Join(codes, " "), slices.Contains(codes, value) == (name == "warning")
}

func connected(members []api.Member) int {
	return len(slices.DeleteFunc(members, func(m api.Member) bool { return !m.Connected }))
}

// processes reads the conditions on an agent's process: exit [STATUS] on HOST…, log REGEXP on
// HOST…, and no-log REGEXP on HOST….
func (w *world) processes(name string, words []string) (condition, error) {
	at := slices.Index(words, "on")
	if at < 0 || at > 1 || name != "exit" && at == 0 {
		return condition{}, fmt.Errorf("%s: want exit [STATUS] on HOST…, or log 'REGEXP' on HOST…", name)
	}
	targets, err := w.hostsOf(words[at+1:])
	if err != nil {
		return condition{}, err
	}
	if name != "exit" {
		wanted, err := regexp.Compile(words[0])
		if err != nil {
			return condition{}, err
		}
		return condition{asks: true, judge: func() verdict { return logged(targets, wanted, name == "log") }}, nil
	}
	status := ""
	if at == 1 {
		if _, err := strconv.Atoi(words[0]); err != nil {
			return condition{}, errors.New("exit: want a number as the status")
		}
		status = "exit status " + words[0]
	}
	return condition{judge: func() verdict { return w.exited(targets, status) }}, nil
}

func (w *world) exited(targets []*hosts.Host, status string) verdict {
	return ofEach(targets, "; ", func(h *hosts.Host) verdict {
		last := lab.Exit{Exit: hosts.Exit{How: "runs"}}
		for _, e := range w.lab.Exits() {
			if e.Host == h.Name() {
				last = e
			}
		}
		ended := last.At != 0 && h.Status() == hosts.Down
		return verdict{ended && (status == "" || last.How == status), last.At, h.Name() + ": " + last.How}
	})
}

const maxLog = 8 << 20

// logged checks whether the pattern is in the logs of all hosts or, if not wanted, in none of the logs.
func logged(targets []*hosts.Host, pattern *regexp.Regexp, wanted bool) verdict {
	v := verdict{holds: true}
	var wrong []string
	for _, h := range targets {
		text, err := os.ReadFile(h.Log())
		if err != nil || pattern.Match(text[:min(len(text), maxLog)]) != wanted {
			v.holds = false
			wrong = append(wrong, h.Name())
		}
	}
	v.saw = "so it is in every log"
	if !v.holds {
		v.saw = fmt.Sprintf("in the log of %s, a line with %q: %t", hosts.Short(wrong), pattern, !wanted)
	}
	return v
}
