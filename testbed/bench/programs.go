package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// lookEvery is how often stamps are read. The figures do not depend on it.
const lookEvery = 2 * time.Millisecond

// commandPackage is the program that the bench lets `doyen run` start.
const (
	commandPackage = "github.com/doyen-election/doyen/testbed/actor/command"
	contested      = "bench"
)

// contenders is a cluster with one program on each host, all candidates in one election.
type contenders struct {
	*rig
	command  command
	programs map[*hosts.Host]*lab.Program
	dying    *lab.Program // the program that a strike ended; nil if none did
}

// strike makes the program that acts stop acting.
type strike func(ctx context.Context, t *contenders, host *hosts.Host, acting stamp.Stamp) error

func strikes() map[string]strike {
	return map[string]strike{
		"kill": func(_ context.Context, t *contenders, host *hosts.Host, _ stamp.Stamp) error {
			t.dying = t.programs[host]
			_, err := t.dying.Crash()
			return err
		},
		"kill-command": func(_ context.Context, t *contenders, host *hosts.Host, acting stamp.Stamp) error {
			t.dying = t.programs[host]
			return syscall.Kill(acting.PID, syscall.SIGKILL)
		},
		"resign": func(ctx context.Context, t *contenders, host *hosts.Host, _ stamp.Stamp) error {
			_, err := handOver(ctx, host, contested, "")
			return err
		},
		"transfer": func(ctx context.Context, t *contenders, host *hosts.Host, _ stamp.Stamp) error {
			_, err := handOver(ctx, host, contested, t.other(host).Name())
			return err
		},
	}
}

type command func(*lab.Program) *exec.Cmd

// campaigning returns a program that is a candidate without `doyen run`.
func campaigning() (command, error) {
	executable, err := os.Executable()
	return func(p *lab.Program) *exec.Cmd {
		return exec.Command(executable, actor.Campaign(p.Host.Config().Socket, contested, "-", p.Stamps)...)
	}, err
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
	campaign, err := campaigning()
	if err != nil {
		return err
	}
	return b.running(ctx, []string{"--restart", "never"}, func(run command) error { return b.strikes(ctx, campaign, run) })
}

func (b *bench) strikes(ctx context.Context, campaign, run command) error {
	for _, p := range []struct {
		by, fault string
		tenths    int
		command   command
	}{
		{"campaign", "kill", 40, campaign}, {"run", "kill-command", 10, run}, {"run", "kill", 10, run},
		{"campaign", "resign", 3, campaign}, {"campaign", "transfer", 3, campaign},
	} {
		name := fmt.Sprintf("Program/by=%s/fault=%s", p.by, p.fault)
		if err := b.replacements(ctx, name, b.rounds(p.tenths), p.command, strikes()[p.fault]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) replacements(ctx context.Context, name string, rounds int, command command, hit strike) error {
	return b.rivals(ctx, b.config(), command, func(t *contenders) error {
		return b.repeat(name, rounds, func() error {
			after, together, err := t.round(ctx, hit)
			if err == nil {
				b.add(name, took(after, perTakeover), took(together, overlapped))
			}
			return err
		})
	})
}

// rivals starts agents with a candidate on each host, and measures while nothing watches them.
func (b *bench) rivals(ctx context.Context, c hosts.Config, command command, measure func(*contenders) error) error {
	return b.quietOf(ctx, c, func(r *rig, _ *hosts.Host) error {
		t := &contenders{rig: r, command: command, programs: map[*hosts.Host]*lab.Program{}}
		for _, h := range r.Cluster.Hosts() {
			if err := t.start(h); err != nil {
				return err
			}
		}
		return measure(t)
	})
}

func (t *contenders) start(h *hosts.Host) (err error) {
	t.programs[h], err = t.Launch(h.Name(), "", h, false, t.command)
	return err
}

// newest returns the newest stamp, which is of the program that acts, and its host.
func (t *contenders) newest() (host *hosts.Host, found stamp.Stamp, err error) {
	for _, h := range t.Cluster.Hosts() {
		all, err := stamp.Read(t.programs[h].Stamps)
		if err != nil {
			return nil, stamp.Stamp{}, err
		}
		for _, s := range all {
			if s.First > found.First {
				host, found = h, s
			}
		}
	}
	return host, found, nil
}

// await reads the stamps until the newest one fits.
func (t *contenders) await(ctx context.Context, what string, fits func(stamp.Stamp) bool) (host *hosts.Host, found stamp.Stamp, err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if host, found, err = t.newest(); err != nil || found.First > 0 && fits(found) {
			return host, found, err
		}
		if err := observe.Sleep(ctx, lookEvery); err != nil {
			return nil, stamp.Stamp{}, err
		}
	}
	return nil, stamp.Stamp{}, fmt.Errorf("wait for %s: not within %s", what, patience)
}

// round strikes the program that acts. It returns how long it took until another one acted, and
// for how long both did.
func (t *contenders) round(ctx context.Context, hit strike) (took, overlap time.Duration, err error) {
	if t.dying != nil {
		select {
		case <-t.dying.Ended():
		case <-time.After(patience):
			return 0, 0, fmt.Errorf("program %s, which was killed, has not ended", t.dying.Name)
		}
		t.dying = nil
	}
	for h, p := range t.programs {
		if p.Acting().Ended != "" {
			if err := t.start(h); err != nil {
				return 0, 0, err
			}
		}
	}
	settle := t.lease/3 + time.Duration(t.rng.Int64N(int64(t.lease/4))) // then all are candidates; the moment is random
	if err := observe.Sleep(ctx, settle); err != nil {
		return 0, 0, err
	}
	host, acting, err := t.await(ctx, "a program that acts", func(s stamp.Stamp) bool { return stamp.Now()-s.Last < int64(settle) })
	if err != nil {
		return 0, 0, err
	}
	if err := rivalled(ctx, host); err != nil {
		return 0, 0, err
	}
	at := boottime.Now()
	if err := hit(ctx, t, host, acting); err != nil {
		return 0, 0, err
	}
	_, next, err := t.await(ctx, "the next program", func(s stamp.Stamp) bool { return s.First > int64(at) })
	if err != nil {
		return 0, 0, err
	}
	before, err := stamp.Read(t.programs[host].Stamps)
	if err != nil {
		return 0, 0, err
	}
	i := slices.IndexFunc(before, func(s stamp.Stamp) bool { return s.PID == acting.PID && s.Term == acting.Term })
	return time.Duration(next.First - int64(at)), max(0, time.Duration(before[i].Last-next.First)), nil
}

// rivalled waits until the program that was started again is a candidate too.
func rivalled(ctx context.Context, h *hosts.Host) error {
	c := client.New(h.Config().Socket)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		e, err := c.Election(ctx, contested, client.ElectionOptions{})
		if err != nil || len(e.Candidates) > 1 {
			return err
		}
		if err := observe.Sleep(ctx, lookEvery); err != nil {
			return fmt.Errorf("wait for a second candidate: %w", err)
		}
	}
}
