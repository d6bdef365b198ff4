package bench

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

const (
	// lookEvery and askEvery are how often stamps are read and agents are asked. The figures
	// of programs do not depend on them.
	lookEvery = 2 * time.Millisecond
	askEvery  = time.Millisecond
	// commandPackage is the program that the bench lets `doyen run` start.
	commandPackage = "github.com/doyen-election/doyen/testbed/actor/command"
	contested      = "bench"
)

// contenders is a cluster that nothing watches. Each host has one program, and all programs are
// candidates in one election.
type contenders struct {
	*rig
	command  command
	programs map[*hosts.Host]*lab.Program
}

type command func(*lab.Program) *exec.Cmd

// strike makes the program that acts on a host stop acting. It returns the program if the strike
// also ends the program's process, else nil.
type strike func(ctx context.Context, t *contenders, host *hosts.Host, acting observe.ProgramSpan) (*lab.Program, error)

func strikes() map[string]strike {
	return map[string]strike{
		"kill": func(_ context.Context, t *contenders, host *hosts.Host, _ observe.ProgramSpan) (*lab.Program, error) {
			_, err := t.programs[host].Crash()
			return t.programs[host], err
		},
		"kill-command": func(_ context.Context, t *contenders, host *hosts.Host, acting observe.ProgramSpan) (*lab.Program, error) {
			return t.programs[host], syscall.Kill(acting.PID, syscall.SIGKILL)
		},
		"resign": func(ctx context.Context, _ *contenders, host *hosts.Host, _ observe.ProgramSpan) (*lab.Program, error) {
			_, err := handOver(ctx, host, contested, "")
			return nil, err
		},
		"transfer": func(ctx context.Context, t *contenders, host *hosts.Host, _ observe.ProgramSpan) (*lab.Program, error) {
			_, err := handOver(ctx, host, contested, t.other(host).Name())
			return nil, err
		},
	}
}

// campaigning is a program that is a candidate without `doyen run`.
func campaigning(p *lab.Program) *exec.Cmd {
	return exec.Command(actor.Path(), actor.Campaign(p.Host.Config().Socket, contested, "-", p.Stamps)...)
}

// running measures with a program that is `doyen run` with these flags.
func (b *bench) running(ctx context.Context, flags []string, measure func(command) error) error {
	dir, err := hosts.NewDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	stamps, err := hosts.BuildShipped(ctx, dir.Path, commandPackage)
	if err != nil {
		return err
	}
	return measure(func(p *lab.Program) *exec.Cmd {
		args := slices.Concat([]string{"run", "--socket", p.Host.Config().Socket, "--quiet"}, flags, []string{contested, "--", stamps, p.Stamps})
		return exec.Command(b.binary, args...)
	})
}

func (b *bench) programs(ctx context.Context) error {
	return b.running(ctx, []string{"--restart", "never"}, func(run command) error {
		for _, p := range []struct {
			by, fault string
			tenths    int
			command   command
		}{
			{"campaign", "kill", 40, campaigning}, {"run", "kill-command", 10, run}, {"run", "kill", 10, run},
			{"campaign", "resign", 3, campaigning}, {"campaign", "transfer", 3, campaigning},
		} {
			name := fmt.Sprintf("Program/by=%s/fault=%s", p.by, p.fault)
			if err := b.replacements(ctx, name, b.rounds(p.tenths), p.command, strikes()[p.fault]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) replacements(ctx context.Context, name string, rounds int, command command, hit strike) error {
	return b.quiet(ctx, b.config(), func(r *rig, _ *hosts.Host) error { return b.replace(ctx, name, rounds, r, command, hit) })
}

func (b *bench) replace(ctx context.Context, name string, rounds int, r *rig, command command, hit strike) error {
	t, err := r.contend(command)
	if err != nil {
		return err
	}
	return b.repeat(name, rounds, func() error {
		after, together, err := t.round(ctx, hit)
		if err == nil {
			b.add(name, took(after, perTakeover), took(together, overlapped))
		}
		return err
	})
}

// contend starts a candidate on each host.
func (r *rig) contend(command command) (*contenders, error) {
	t := &contenders{rig: r, command: command, programs: map[*hosts.Host]*lab.Program{}}
	for _, h := range r.Cluster.Hosts() {
		if err := t.start(h); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *contenders) start(h *hosts.Host) (err error) {
	t.programs[h], err = t.Launch(h.Name(), "", h, false, t.command)
	return err
}

// await reads the stamps until fits accepts the newest span.
func (t *contenders) await(ctx context.Context, what string, fits func(observe.ProgramSpan) bool) (newest observe.ProgramSpan, err error) {
	err = until(ctx, what, patience, lookEvery, func(context.Context) (bool, error) {
		spans, err := t.Spans()
		if err != nil || len(spans) == 0 {
			return false, err
		}
		newest = spans[len(spans)-1]
		return fits(newest), nil
	})
	return newest, err
}

// acted returns, by the programs' own stamps, how long at most no program acted between the two
// instants, and how long at most two programs acted at once after the first one.
func (t *contenders) acted(from, until election.Instant) (paused, together time.Duration, err error) {
	spans, err := t.Spans()
	if err != nil {
		return 0, 0, err
	}
	paused, _ = observe.Pause(spans, from, until)
	for _, o := range observe.ProgramOverlaps(spans) {
		together = max(together, o.To.Sub(max(o.From, from)))
	}
	return paused, together, nil
}

// round strikes the program that acts. It returns how long it took until the next program acted, and for
// how long two programs acted at once.
func (t *contenders) round(ctx context.Context, hit strike) (took, together time.Duration, err error) {
	for h, p := range t.programs {
		if p.Acting().Ended != "" {
			if err := t.start(h); err != nil {
				return 0, 0, err
			}
		}
	}
	host, _, err := t.settled(ctx, t.lease/3)
	if err != nil {
		return 0, 0, err
	}
	began := boottime.Now()
	acting, err := t.await(ctx, "a program that acts", func(s observe.ProgramSpan) bool { return s.To > began })
	if err != nil {
		return 0, 0, err
	}
	at := boottime.Now()
	dying, err := hit(ctx, t, host, acting)
	if err != nil {
		return 0, 0, err
	}
	next, err := t.await(ctx, "the next program", func(s observe.ProgramSpan) bool { return s.From > at })
	if err != nil {
		return 0, 0, err
	}
	if dying != nil {
		err = until(ctx, "the end of "+dying.Name, patience, lookEvery, func(context.Context) (bool, error) { return dying.Acting().Ended != "", nil })
	}
	if err == nil {
		_, together, err = t.acted(at, boottime.Now())
	}
	return next.From.Sub(at), together, err
}

// settled waits for d and a little longer, and then until a program leads and another one is a candidate
// too. It returns the host that leads, and the election as that host's agent reports it.
func (r *rig) settled(ctx context.Context, d time.Duration) (leader *hosts.Host, e api.Election, err error) {
	if err := observe.Sleep(ctx, d+time.Duration(r.rng.Int64N(int64(r.lease/4)))); err != nil {
		return nil, e, err
	}
	err = until(ctx, "a leader with a rival", patience, askEvery, func(ctx context.Context) (bool, error) {
		for _, leader = range r.Cluster.Hosts() {
			var err error
			if e, err = asked(ctx, leader); err == nil && e.IsLeader && len(e.Candidates) > 1 {
				return true, nil
			}
		}
		return false, nil
	})
	return leader, e, err
}

func asked(ctx context.Context, h *hosts.Host) (e api.Election, err error) {
	err = lab.Call(ctx, h, func(ctx context.Context, c *client.Client) (err error) {
		e, err = c.Election(ctx, contested, client.ElectionOptions{})
		return err
	})
	return e, err
}
