package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// struck notes that something was done to hosts at an instant: what is expected
// next is counted from there.
func (w *world) struck(at election.Instant, what string, where, peers []string, detail string) {
	w.acted = at
	w.faults = append(w.faults, observe.Fault{What: what, Where: where, Peers: peers, Detail: detail, From: at, To: election.Never})
	text := what + " " + short(where)
	if detail != "" {
		text += ", " + detail
	}
	w.watcher.remark(at, "** %s", text)
}

// mended notes that the faults of a kind are over for these hosts.
func (w *world) mended(at election.Instant, where []string, kinds ...string) {
	w.acted = at
	found := false
	for i := range w.faults {
		f := &w.faults[i]
		hit := slices.ContainsFunc(where, func(name string) bool { return slices.Contains(f.Where, name) })
		if hit && f.To == election.Never && slices.Contains(kinds, f.What) {
			f.To, found = at, true
		}
	}
	if found {
		w.watcher.remark(at, "** %s of %s has ended", strings.Join(kinds, " or "), short(where))
	}
}

// ail notes what ails a host, for the word rest.
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

func startCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	targets, err := w.hostsOf(args)
	if err != nil {
		return "", err
	}
	began := boottime.Now()
	for i, h := range targets {
		if i >= atOnce {
			w.settled(targets[i-atOnce], i-atOnce)
		}
		if err := w.start(h); err != nil {
			return "", err
		}
	}
	w.acted = began // not the last one's start
	return "", nil
}

const (
	// atOnce is how many agents come up at a time: dozens that all start on one
	// processor lose each other's packets to time limits, which hosts with
	// processors of their own would not.
	atOnce      = 6
	settleLimit = 3 * time.Second
	settleEvery = 30 * time.Millisecond
)

// settled waits until the agent is connected with as many as were started before
// it, or for so long that waiting is pointless: whatever is expected of it is
// judged later.
func (w *world) settled(h *hosts.Host, before int) {
	ctx, cancel := context.WithTimeout(w.ctx, settleLimit)
	defer cancel()
	c := client.New(h.Config().Socket)
	defer c.Close()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for ctx.Err() == nil && h.Status() == hosts.Running {
		members, err := c.Members(ctx)
		connected := 0
		for _, m := range members {
			if m.Connected {
				connected++
			}
		}
		if err == nil && connected >= before {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (w *world) start(h *hosts.Host) error {
	at, err := h.Start()
	if err != nil {
		return err
	}
	w.heal(h.Name(), "down", "frozen")
	w.mended(at, []string{h.Name()}, "crash", "terminate", "wipe")
	w.watcher.tell(func() { w.watcher.seen.Started(h.Name(), at) })
	return nil
}

// each does something to every host that the words mean.
func (w *world) each(words []string, do func(*hosts.Host) error) error {
	targets, err := w.hostsOf(words)
	if err != nil {
		return err
	}
	for _, h := range targets {
		if err := do(h); err != nil {
			return err
		}
	}
	return nil
}

func crashCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if n := len(args) - 1; n == 1 && args[n] == "with-its-guard" {
		if p, ok := w.programNamed(args[:n]); ok {
			return "", p.killWithGuard(w)
		}
	}
	if p, ok := w.programNamed(args); ok {
		return "", p.kill(w)
	}
	targets, err := w.hostsOf(args)
	if err != nil {
		return "", err
	}
	for _, h := range targets {
		w.watcher.ask(h) // what it told last counts
	}
	for _, h := range targets { // as close to each other as can be
		at, err := h.Kill()
		if err != nil {
			return "", err
		}
		w.ail(h.Name(), "down")
		w.struck(at, "crash", []string{h.Name()}, nil, "")
	}
	return "", w.gone(targets)
}

// gone waits until the hosts' processes have ended.
func (w *world) gone(targets []*hosts.Host) error {
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for _, h := range targets {
		select {
		case <-h.Done():
		case <-limit.C:
			return fmt.Errorf("%s has not ended in 30 s", h.Name())
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	return nil
}

func terminateCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	return "", w.each(args, func(h *hosts.Host) error {
		at, err := h.Terminate()
		if err != nil {
			return err
		}
		w.ail(h.Name(), "down")
		w.struck(at, "terminate", []string{h.Name()}, nil, "")
		return nil
	})
}

func freezeCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if p, ok := w.programNamed(args); ok {
		return "", p.freeze(w)
	}
	return "", w.each(args, func(h *hosts.Host) error {
		w.watcher.ask(h)
		at, err := h.Freeze()
		if err != nil {
			return err
		}
		w.watcher.tell(func() { w.watcher.seen.Froze(h.Name()) })
		w.ail(h.Name(), "frozen")
		w.struck(at, "freeze", []string{h.Name()}, nil, "")
		return nil
	})
}

func thawCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if p, ok := w.programNamed(args); ok {
		return "", p.thaw(w)
	}
	return "", w.each(args, func(h *hosts.Host) error {
		at, err := h.Thaw()
		if err != nil {
			return err
		}
		w.watcher.tell(func() { w.watcher.seen.Thawed(h.Name(), at) })
		w.heal(h.Name(), "frozen")
		w.mended(at, []string{h.Name()}, "freeze")
		w.watcher.ask(h) // whether it thinks that it still leads
		return nil
	})
}

// restartCommand ends agents politely, one after another, and starts each again
// as soon as it ended.
func restartCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	return "", w.each(args, func(h *hosts.Host) error {
		at, err := h.Terminate()
		if err != nil && !errors.Is(err, hosts.ErrDown) {
			return err
		}
		if err == nil {
			w.struck(at, "terminate", []string{h.Name()}, nil, "to start it again")
		}
		if err := w.gone([]*hosts.Host{h}); err != nil {
			return err
		}
		return w.start(h)
	})
}

func wipeCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	return "", w.each(args, func(h *hosts.Host) error {
		if err := h.Wipe(); err != nil {
			return err
		}
		w.struck(boottime.Now(), "wipe", []string{h.Name()}, nil, "")
		return nil
	})
}

// onHost makes a command of a fault of one host that others may begin or end.
func onHost(what, detail string, over bool, do func(*hosts.Host) (election.Instant, error)) command {
	return func(w *world, _ *testscript.TestScript, args []string) (string, error) {
		return "", w.each(args, func(h *hosts.Host) error { return w.doTo(h, what, detail, over, do) })
	}
}

func (w *world) doTo(h *hosts.Host, what, detail string, over bool, do func(*hosts.Host) (election.Instant, error)) error {
	at, err := do(h)
	switch {
	case err != nil:
		return err
	case over:
		w.mended(at, []string{h.Name()}, what)
	default:
		w.struck(at, what, []string{h.Name()}, nil, detail)
	}
	return nil
}

func fillDiskCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	return onHost("disk", "full", false, (*hosts.Host).FillDisk)(w, ts, args)
}

func freeDiskCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	return onHost("disk", "", true, (*hosts.Host).FreeDisk)(w, ts, args)
}

// slowDiskCommand: slow-disk HOST… TIME|stuck|off.
func slowDiskCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	if len(args) < 2 {
		return "", errors.New("want hosts and then a time, stuck or off")
	}
	last := args[len(args)-1]
	delay := hosts.Stuck
	switch last {
	case "stuck":
	case "off":
		delay = 0
	default:
		d, err := time.ParseDuration(last)
		if err != nil || d <= 0 {
			return "", fmt.Errorf("%q: want a time such as 500ms, stuck or off", last)
		}
		delay = d
	}
	do := func(h *hosts.Host) (election.Instant, error) { return h.SlowDisk(delay) }
	return onHost("disk", "each write waits: "+last, delay == 0, do)(w, ts, args[:len(args)-1])
}

func starveCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	return onHost("cpu", "others want the processor all the time", false,
		func(h *hosts.Host) (election.Instant, error) { return h.Starve(true) })(w, ts, args)
}

func feedCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	return onHost("cpu", "", true, func(h *hosts.Host) (election.Instant, error) { return h.Starve(false) })(w, ts, args)
}

// limitMemoryCommand: limit-memory HOST… MEGABYTES, 0 for no limit.
func limitMemoryCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	if len(args) < 2 {
		return "", errors.New("want hosts and then a number of megabytes, 0 for no limit")
	}
	last := args[len(args)-1]
	mb, err := strconv.ParseInt(last, 10, 32)
	if err != nil || mb < 0 {
		return "", fmt.Errorf("%q: want a number of megabytes, 0 for no limit", last)
	}
	do := func(h *hosts.Host) (election.Instant, error) { return h.LimitMemory(mb << 20) }
	return onHost("memory", last+" MB", mb == 0, do)(w, ts, args[:len(args)-1])
}

// clockCommand: clock HOST… RATE, from the next start on.
func clockCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if len(args) < 2 {
		return "", errors.New("want hosts and then a rate such as 1.009")
	}
	rate, err := strconv.ParseFloat(args[len(args)-1], 64)
	if err != nil || rate <= 0 {
		return "", fmt.Errorf("%q: want a rate such as 1.009", args[len(args)-1])
	}
	return "", w.each(args[:len(args)-1], func(h *hosts.Host) error {
		if err := h.ClockRate(rate); err != nil {
			return err
		}
		if rate != 1 {
			w.struck(boottime.Now(), "clock", []string{h.Name()}, nil, fmt.Sprintf("runs at %g times real time", rate))
		}
		return nil
	})
}

// elapseCommand lets a fault last while nobody can say anything.
func elapseCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("want a time")
	}
	long, err := time.ParseDuration(args[0])
	if err != nil || long <= 0 || long > maxWithin {
		return "", fmt.Errorf("%q: want a time such as 2s, at most an hour", args[0])
	}
	end := time.NewTimer(long)
	defer end.Stop()
	select {
	case <-end.C:
	case <-w.ctx.Done():
		return "", w.ctx.Err()
	}
	w.acted = boottime.Now()
	return "", nil
}
