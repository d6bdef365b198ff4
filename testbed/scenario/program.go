package scenario

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/attack"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
)

// programCommand: program NAME HOST ELECTION [priority=N].
func programCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	priority := "-"
	for _, word := range args[3:] {
		key, value, err := pair(word)
		if err != nil || key != "priority" {
			return "", fmt.Errorf("%q: only priority=N can be set", word)
		}
		priority = value
	}
	return "", w.launch(args[0], args[1], args[2], func(p *lab.Program) *exec.Cmd {
		return exec.Command(actor.Path(), actor.Campaign(p.Host.Config().Socket, p.Election, priority, p.Stamps)...)
	})
}

// runCommand: run NAME HOST ELECTION [by-a-child] [FLAG…]. It starts `doyen run` with a command
// that acts as long as it runs. With by-a-child, a child of the command acts in its place.
func runCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	role, flags := actor.Command, args[3:]
	if len(flags) > 0 && flags[0] == "by-a-child" {
		role, flags = actor.Parent, flags[1:]
	}
	return "", w.launch(args[0], args[1], args[2], func(p *lab.Program) *exec.Cmd {
		all := slices.Concat([]string{"run", "--socket", p.Host.Config().Socket}, flags,
			[]string{p.Election, "--", actor.Path()}, role(p.Stamps))
		return exec.Command(w.o.Binary.Path, all...)
	})
}

func (w *world) launch(name, host, election string, command func(*lab.Program) *exec.Cmd) error {
	h, err := w.oneHost(host)
	if err != nil {
		return err
	}
	if _, taken := w.lab.Program(name); taken || slices.Contains(w.config.Names(), name) {
		return fmt.Errorf("the name %q is taken", name)
	}
	if _, err := w.lab.Launch(name, election, h, false, command); err != nil {
		return err
	}
	w.acted = boottime.Now()
	return nil
}

func (w *world) programNamed(words []string) (*lab.Program, bool) {
	if len(words) != 1 || w.lab == nil {
		return nil, false
	}
	return w.lab.Program(words[0])
}

// strikes is the last step of each command that did something to a program. It notes the instant.
func (w *world) strikes(at election.Instant, err error) (string, error) {
	if err == nil {
		w.acted = at
	}
	return "", err
}

// crashWithGuard kills a `doyen run` and its guard. It first freezes `doyen run`, so that neither
// can react to the other's end. Then it kills the guard, waits until the kernel has killed the
// command, and kills `doyen run`.
func crashWithGuard(p *lab.Program) (election.Instant, error) {
	guarding, err := childOf(p.PID())
	if err != nil {
		return 0, fmt.Errorf("find the guard of %s: %w", p.Name, err)
	}
	command, err := childOf(guarding)
	if err != nil {
		return 0, fmt.Errorf("find the command of %s: %w", p.Name, err)
	}
	if _, err := p.Freeze(); err != nil {
		return 0, err
	}
	if err := syscall.Kill(guarding, syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("crash the guard of %s: %w", p.Name, err)
	}
	for deadline := time.Now().Add(time.Second); lab.Lives(command) && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	return p.Crash()
}

func childOf(parent int) (int, error) {
	if all := guard.Descendants(parent); len(all) > 0 {
		return all[0], nil
	}
	return 0, fmt.Errorf("process %d has no child", parent)
}

// acting reads the conditions on programs: acting P, one-acting among P…, not-acting P…, ended
// [STATUS] P….
func (w *world) acting(name string, words []string) (condition, error) {
	if len(words) > 0 && (words[0] == "among" || words[0] == "on") {
		words = words[1:]
	}
	status := -1
	if name == "ended" && len(words) > 0 {
		if n, err := strconv.Atoi(words[0]); err == nil {
			status, words = n, words[1:]
		}
	}
	var all []*lab.Program
	for _, word := range words {
		p, ok := w.lab.Program(word)
		if !ok {
			return condition{}, fmt.Errorf("there is no program %q", word)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return condition{}, errors.New("no program is named")
	}
	// Nothing reports the end of a command that was killed, or what a hook does, so asks is true.
	return condition{asks: true, judge: func() verdict {
		c := census(all)
		switch name {
		case "not-acting":
			return verdict{holds: c.acting == 0, saw: c.saw}
		case "one-acting":
			return verdict{c.acting == 1, c.since, c.saw}
		case "ended":
			if status >= 0 && slices.ContainsFunc(all, func(p *lab.Program) bool { return p.Acting().Code != status }) {
				return verdict{saw: c.saw}
			}
			return verdict{c.ended == len(all), c.since, c.saw}
		}
		return verdict{c.acting == len(all), c.since, c.saw}
	}}, nil
}

type counted struct {
	acting, ended int
	since         election.Instant // the instant of the programs' newest report
	saw           string
}

func census(all []*lab.Program) counted {
	var c counted
	var described []string
	for _, p := range all {
		a, word := p.Acting(), "does not act"
		switch {
		case a.Ended != "":
			word = "ended, " + a.Ended
			if p.Election == "" && a.Code > 0 {
				word = "failed, " + a.Ended // an attack that failed to run shows nothing
			} else {
				c.ended++
			}
			if a.Last != "" {
				word += ": " + a.Last
			}
		case a.Acts:
			c.acting++
			word = "acts under term " + strconv.FormatUint(a.Term, 10)
		}
		c.since = max(c.since, a.Since)
		described = append(described, p.Name+" "+word)
	}
	c.saw = strings.Join(described, "; ")
	return c
}

type hooked struct{ name, host, election string }

// hookCommand: hook NAME HOST ELECTION. The host's hook acts from the moment at which its host
// leads. `doyen act`, which the agent's keeper starts, ends the hook.
func hookCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if w.lab != nil {
		return "", errLaidOut
	}
	name, of := args[0], args[2]
	taken := slices.ContainsFunc(w.hooks, func(h *hooked) bool { return h.name == name })
	if taken || slices.Contains(w.config.Names(), name) {
		return "", fmt.Errorf("the name %q is taken", name)
	}
	hosts, err := w.names(args[1:2])
	if err != nil {
		return "", err
	}
	if len(hosts) != 1 {
		return "", errors.New("want one host: each has its own hook")
	}
	w.hooks = append(w.hooks, &hooked{name: name, host: hosts[0], election: of})
	w.settings[hosts[0]] = append(w.settings[hosts[0]], func(c *settings.Config) {
		dir := filepath.Dir(c.Socket)
		c.Keeper = true // the keeper starts `doyen act`, which runs the hook
		command := strings.Join(append([]string{actor.Path()}, actor.Command(lab.StampsIn(dir, name))...), " ")
		if of == string(election.Default) {
			c.OnChange = command
			return
		}
		if c.Elections == nil {
			c.Elections = map[string]settings.ElectionConfig{}
		}
		c.Elections[of] = settings.ElectionConfig{OnChange: command}
	})
	return "", nil
}

// layOutHooks adds each hook to the lab as a program, so that conditions can name it.
func (w *world) layOutHooks() error {
	for _, h := range w.hooks {
		host, err := w.oneHost(h.host)
		if err != nil {
			return err
		}
		if _, err := w.lab.Launch(h.name, h.election, host, false, nil); err != nil {
			return err
		}
	}
	return nil
}

// attackCommand: attack NAME from HOST on HOST… [KEY=VALUE…] [as=P] for TIME. The script does not
// wait for the attack's end. The attack is a program of the script, named NAME or, with as=P, P.
func attackCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	const want = "want: attack NAME from HOST on HOST… [KEY=VALUE…] for TIME"
	long, words, err := duration(args, "for", 0)
	if err != nil {
		return "", err
	}
	if long == 0 || len(words) < 5 || words[1] != "from" || words[3] != "on" {
		return "", errors.New(want)
	}
	words, pairs := options(words)
	name, set := words[0], map[string]string{}
	for _, word := range pairs {
		key, value, err := pair(word)
		if err != nil {
			return "", err
		}
		set[key] = value
	}
	if as, ok := set["as"]; ok {
		name = as
		delete(set, "as")
	}
	from, err := w.oneHost(words[2])
	if err != nil {
		return "", err
	}
	targets, err := w.hostsOf(words[4:])
	if err != nil {
		return "", err
	}
	order, err := orderOf(words[0], from, targets, long, set)
	if err != nil {
		return "", err
	}
	arguments, err := actor.Attack(order)
	if err != nil {
		return "", err
	}
	return attack.Does(words[0]), w.launch(name, from.Name(), "", func(*lab.Program) *exec.Cmd {
		return exec.Command(actor.Path(), arguments...)
	})
}

func orderOf(name string, from *hosts.Host, targets []*hosts.Host, long time.Duration, set map[string]string) (attack.Order, error) {
	o := attack.Order{Attack: name, For: long, Options: set, Here: len(targets) == 1 && targets[0] == from}
	for _, h := range targets {
		c, err := h.Config().Resolve()
		if err != nil {
			return o, fmt.Errorf("%s: %w", h.Name(), err)
		}
		bind, err := netip.ParseAddr(c.Bind)
		if err != nil {
			return o, fmt.Errorf("%s: %w", h.Name(), err)
		}
		o.Targets = append(o.Targets, attack.Target{
			Gossip: netip.AddrPortFrom(bind, uint16(c.GossipPort)), Peer: netip.AddrPortFrom(bind, uint16(c.PeerPort)),
			HTTP: c.HTTP, Socket: c.Socket, Cluster: c.Cluster, KeyFile: c.KeyFile,
			Algorithm: c.Algorithm, Heartbeat: c.Heartbeat, Lease: c.Lease,
		})
	}
	return o, o.Check()
}
