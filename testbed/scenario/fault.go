package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// ails are the faults that exclude a host from the word rest.
var ails = []string{"crash", "terminate", "freeze", "cut", "carrier"}

// begin makes a fault happen to hosts. The next expectation counts its time from the fault.
func (w *world) begin(f hosts.Fault, where ...*hosts.Host) error {
	at, err := w.lab.Begin(f, where...)
	if err != nil {
		return err
	}
	w.acted = at
	for _, h := range where {
		if slices.Contains(ails, f.Name) {
			w.ail(h.Name(), f.Name)
		}
	}
	return nil
}

func (w *world) end(f hosts.Fault, where ...*hosts.Host) error {
	at, err := w.lab.End(f, where...)
	if err != nil {
		return err
	}
	w.acted = at
	for _, h := range where {
		w.heal(h.Name(), f.Name)
	}
	return nil
}

// begin makes a command that begins a fault, and end makes one that ends a fault: NAME HOST….
func begin(f func() hosts.Fault) command { return onHosts((*world).begin, f) }

func end(f func() hosts.Fault) command { return onHosts((*world).end, f) }

func onHosts(do func(*world, hosts.Fault, ...*hosts.Host) error, f func() hosts.Fault) command {
	return forHosts(func(w *world, targets []*hosts.Host) error { return do(w, f(), targets...) })
}

// forHosts makes a command that does something to hosts: NAME HOST….
func forHosts(do func(*world, []*hosts.Host) error) command {
	return func(w *world, _ *testscript.TestScript, args []string) (string, error) {
		targets, err := w.hostsOf(args)
		if err != nil {
			return "", err
		}
		return "", do(w, targets)
	}
}

// ail notes a fault that a host has now, for the word rest.
func (w *world) ail(host, what string) {
	if w.afflicted[host] == nil {
		w.afflicted[host] = map[string]bool{}
	}
	w.afflicted[host][what] = true
}

func (w *world) heal(host string, whats ...string) {
	for _, what := range whats {
		delete(w.afflicted[host], what)
	}
}

func startAll(w *world, targets []*hosts.Host) error {
	began := boottime.Now()
	for i, h := range targets {
		if i >= atOnce {
			w.settled(targets[i-atOnce], i-atOnce)
		}
		if err := w.start(h); err != nil {
			return err
		}
	}
	w.acted = began // expectations count from the first start, not from the last
	return nil
}

const (
	// atOnce is how many agents start at a time. If dozens started at once on one processor,
	// their packets would be too late for time limits. Real hosts do not have that problem,
	// because each has a processor.
	atOnce      = 6
	settleLimit = 3 * time.Second
	settleEvery = 30 * time.Millisecond
)

// settled waits until the agent is connected to as many agents as were started before it, but
// no longer than settleLimit. It does not fail: a script's expectations show later what is wrong.
func (w *world) settled(h *hosts.Host, before int) {
	ctx, cancel := context.WithTimeout(w.ctx, settleLimit)
	defer cancel()
	c := client.New(h.Config().Socket)
	defer c.Close()
	for ctx.Err() == nil && h.Status() == hosts.Running {
		members, err := c.Members(ctx)
		if err == nil && connected(members) >= before {
			return
		}
		_ = observe.Sleep(ctx, settleEvery)
	}
}

func (w *world) start(h *hosts.Host) error {
	if err := w.end(hosts.Crash(), h); err != nil {
		return err
	}
	w.heal(h.Name(), "terminate", "freeze")
	return nil
}

const endLimit = 30 * time.Second // how long an agent may take to end

func crashCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	if n := len(args) - 1; n == 1 && args[n] == "with-its-guard" {
		if p, ok := w.programNamed(args[:n]); ok {
			return w.strikes(crashWithGuard(p))
		}
	}
	return either((*lab.Program).Crash, forHosts(crashHosts))(w, ts, args)
}

func crashHosts(w *world, targets []*hosts.Host) error {
	if err := w.begin(hosts.Crash(), targets...); err != nil {
		return err
	}
	return w.lab.Ended(w.ctx, endLimit, targets...)
}

// either makes a command that applies to a program or to hosts: NAME PROGRAM, or NAME HOST….
func either(program func(*lab.Program) (election.Instant, error), host command) command {
	return func(w *world, ts *testscript.TestScript, args []string) (string, error) {
		if p, ok := w.programNamed(args); ok {
			return w.strikes(program(p))
		}
		return host(w, ts, args)
	}
}

// restartAll ends agents in the clean way, one after another, and starts each again as soon as it
// has ended.
func restartAll(w *world, targets []*hosts.Host) error {
	for _, h := range targets {
		if err := w.lab.Restart(w.ctx, h, endLimit); err != nil {
			return err
		}
		w.acted = boottime.Now()
		w.heal(h.Name(), "crash", "terminate", "freeze")
	}
	return nil
}

// measured makes a command for a fault that has a measure: NAME HOST… MEASURE. A measure such as
// off ends the fault.
func measured(want string, read func(word string) (f hosts.Fault, over bool, err error)) command {
	return func(w *world, _ *testscript.TestScript, args []string) (string, error) {
		if len(args) < 2 {
			return "", errors.New("want hosts and then " + want)
		}
		n := len(args) - 1
		f, over, err := read(args[n])
		if err != nil {
			return "", fmt.Errorf("%q: want %s", args[n], want)
		}
		targets, err := w.hostsOf(args[:n])
		switch {
		case err != nil:
			return "", err
		case over:
			return "", w.end(f, targets...)
		}
		return "", w.begin(f, targets...)
	}
}

// slowDisk: slow-disk HOST… TIME|stuck|off.
func slowDisk(word string) (hosts.Fault, bool, error) {
	switch word {
	case "stuck":
		return hosts.SlowDisk(hosts.Stuck), false, nil
	case "off":
		return hosts.SlowDisk(0), true, nil
	}
	d, err := time.ParseDuration(word)
	if d <= 0 {
		err = errMeasure
	}
	return hosts.SlowDisk(d), false, err
}

var errMeasure = errors.New("out of bounds")

// crowd: crowd HOST… N.
func crowd(word string) (hosts.Fault, bool, error) {
	n, err := strconv.Atoi(word)
	if n < 0 || n > maxCrowd {
		err = errMeasure
	}
	return hosts.Crowd(n), n == 0, err
}

const maxCrowd = 200

// setClock: clock HOST… RATE. It applies from the next start on.
func setClock(word string) (hosts.Fault, bool, error) {
	rate, err := strconv.ParseFloat(word, 64)
	if rate <= 0 {
		err = errMeasure
	}
	return hosts.Clock(rate), rate == 1, err
}

// setWallClock: wall-clock HOST… TIME. It applies to agents and programs from the next start on.
func setWallClock(word string) (hosts.Fault, bool, error) {
	ahead, err := time.ParseDuration(word)
	return hosts.WallClock(ahead), ahead == 0, err
}

// elapseCommand lets time pass during a fault in which no agent can report anything.
func elapseCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	long, err := timeOf(args[0])
	if err != nil {
		return "", err
	}
	err = observe.Sleep(w.ctx, long)
	w.acted = boottime.Now()
	return "", err
}
