package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// maxFaults bounds the faults in a recording.
const maxFaults = 20_000

// Begin lets a fault happen to all given hosts, as nearly at once as possible. It returns the
// instant just before the fault of the last host. A fault of links is recorded once, any other
// fault once for each host.
func (l *Lab) Begin(f hosts.Fault, where ...*hosts.Host) (at election.Instant, err error) {
	if f.Silences {
		for _, h := range where {
			l.Ask(h) // the answer contains the agent's newest deadline
		}
	}
	var names []string
	for _, h := range where {
		l.expect(f, h, true)
		if at, err = f.Begin(l.Cluster, h); err != nil {
			l.expect(f, h, false)
			return 0, err
		}
		if f.Name == "freeze" {
			l.change(func() { l.seen.Froze(h.Name()) })
		}
		names = append(names, h.Name())
		if f.Peers == nil {
			l.Note(observe.Fault{What: f.Name, Where: []string{h.Name()}, Detail: f.Detail, From: at})
		}
	}
	if f.Peers != nil {
		l.Note(observe.Fault{What: f.Name, Where: names, Peers: f.Peers, Detail: f.Detail, From: at})
	}
	return at, nil
}

// expect records whether the host's process is about to end, if the fault is one that ends processes.
func (l *Lab) expect(f hosts.Fault, h *hosts.Host, yes bool) {
	if f.Name == "crash" || f.Name == "terminate" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.expected[h.Name()] = yes
	}
}

func (l *Lab) End(f hosts.Fault, where ...*hosts.Host) (at election.Instant, err error) {
	for _, h := range where {
		if at, err = f.End(l.Cluster, h); err != nil {
			return 0, err
		}
		switch f.Name {
		case "freeze":
			l.change(func() { l.seen.Thawed(h.Name(), at) })
			l.Over(at, "", []string{h.Name()}, f.Name)
			l.Ask(h) // to learn whether the agent still claims to lead
		case "crash", "terminate":
			l.change(func() { l.seen.Started(h.Name(), at) })
			l.Over(at, "", []string{h.Name()}, "crash", "terminate", "freeze", "wipe")
		default:
			l.Over(at, "", []string{h.Name()}, f.Name)
		}
	}
	return at, nil
}

// StartAll starts every agent. It returns the instants just before the first and just before
// the last start.
func (l *Lab) StartAll() (first, last election.Instant, err error) {
	for _, h := range l.Cluster.Hosts() {
		if last, err = l.Start(h); err != nil {
			return 0, 0, err
		}
		first = cmp.Or(first, last)
	}
	return first, last, nil
}

func (l *Lab) Start(h *hosts.Host) (election.Instant, error) { return l.End(hosts.Crash(), h) }

// Life returns the ID of the process that answers on a host's socket: with a keeper, the agent's newest life.
func Life(ctx context.Context, h *hosts.Host) (pid int, err error) {
	err = Call(ctx, h, func(ctx context.Context, c *client.Client) error {
		a, err := c.Agent(ctx)
		pid = a.PID
		return err
	})
	return pid, err
}

// Strike sends a signal to pid, the present life of an agent with a keeper. The agent's leaderships then count
// until the deadlines that it reported last. A release may end them earlier, and the next life may
// report that it still leads.
func (l *Lab) Strike(what string, h *hosts.Host, pid int, s syscall.Signal) (election.Instant, error) {
	l.Ask(h)
	at := boottime.Now()
	if err := syscall.Kill(pid, s); err != nil {
		return 0, fmt.Errorf("%s %s: %w", what, h.Name(), err)
	}
	l.change(func() {
		if s == syscall.SIGKILL {
			l.seen.Exited(h.Name(), at)
			return
		}
		l.seen.Froze(h.Name())
		l.seen.Thawed(h.Name(), at)
	})
	l.Note(observe.Fault{What: what, Where: []string{h.Name()}, From: at, To: at})
	return at, nil
}

// Restart asks an agent to end, and starts it as soon as it has ended. It returns ErrLate if
// the agent does not end within the limit.
func (l *Lab) Restart(ctx context.Context, h *hosts.Host, limit time.Duration) error {
	f := hosts.Terminate()
	f.Detail = "to start it again"
	if h.Status() != hosts.Down {
		if _, err := l.Begin(f, h); err != nil {
			return err
		}
		_, _ = h.Thaw() // a frozen agent would not react
	}
	if err := l.Ended(ctx, limit, h); err != nil {
		return err
	}
	_, err := l.Start(h)
	return err
}

// HandOver makes an election's leader hand over to the host that to names. If to is "", the next by
// rank gets the leadership. HandOver returns the instant just before the request.
func HandOver(ctx context.Context, from *hosts.Host, name, to string) (at election.Instant, err error) {
	err = Call(ctx, from, func(ctx context.Context, c *client.Client) (err error) {
		var outcome api.Outcome
		if at = boottime.Now(); to == "" {
			outcome, err = c.Resign(ctx, name)
		} else {
			outcome, err = c.Transfer(ctx, name, to)
		}
		if err == nil && !outcome.Done {
			err = errors.New(outcome.Message)
		}
		return wrap.Error(err, "%s does not hand over", from.Name())
	})
	return at, err
}

// Note records a fault that began. The fault lasts until Over is called, unless its To is set.
func (l *Lab) Note(f observe.Fault) {
	f.To = cmp.Or(f.To, election.Never)
	l.change(func() {
		if len(l.faults) < maxFaults {
			l.faults = append(l.faults, f)
		}
	})
	if l.o.OnFault != nil {
		l.o.OnFault(f, false)
	}
}

// Over records that faults of these kinds have ended for hosts. If program is not "", only faults
// of that program on the hosts have ended.
func (l *Lab) Over(at election.Instant, program string, where []string, kinds ...string) {
	var ended []observe.Fault
	l.change(func() {
		for i := range l.faults {
			f := &l.faults[i]
			hit := slices.ContainsFunc(where, func(name string) bool { return slices.Contains(f.Where, name) })
			if hit && f.To == election.Never && slices.Contains(kinds, f.What) && f.Program == program {
				f.To = at
				ended = append(ended, *f)
			}
		}
	})
	for _, f := range ended {
		if l.o.OnFault != nil {
			l.o.OnFault(f, true)
		}
	}
}

func (l *Lab) Faults() []observe.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.faults)
}
