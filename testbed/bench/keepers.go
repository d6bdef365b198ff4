package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/proof"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// ownFile runs the product by a name that each host has to itself, so that it can be removed.
type ownFile struct{ hosts.Binary }

func (f ownFile) Command(c agent.Config, dir string) (*exec.Cmd, error) {
	own := hosts.Binary{Path: filepath.Join(dir, filepath.Base(hosts.Product))}
	if err := os.Symlink(f.Path, own.Path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return own.Command(c, dir)
}

// obituaries measures how soon another agent leads when no next life of the leader can be
// started: first where only hosts are candidates, then with a program on each, for which the
// keeper waits.
func (b *bench) obituaries(ctx context.Context) error {
	defer func(was hosts.Program) { b.program = was }(b.program)
	b.program = ownFile{hosts.Binary{Path: b.binary}}
	err := b.quietOf(ctx, b.keeping(), func(r *rig, _ *hosts.Host) error {
		const what = "Obituary"
		return b.repeat(what, b.rounds(5), func() error {
			leader, at, knew, err := r.loseProgram(ctx, string(election.Default))
			if err != nil {
				return err
			}
			began, err := r.heir(ctx, leader)
			if err != nil {
				return err
			}
			b.add(what, took(began.Sub(knew), perTakeover), took(began.Sub(at), "ms-killed/takeover"))
			_, err = leader.Kill()
			return errors.Join(err, r.startAgain(ctx, leader))
		})
	})
	if err != nil {
		return err
	}
	return b.kept(ctx, func(t *contenders) error {
		const what = "Obituary/by=run"
		return b.repeat(what, b.rounds(2), func() error {
			leader, at, knew, err := t.loseProgram(ctx, contested)
			if err != nil {
				return err
			}
			_, next, err := t.await(ctx, "the next program", func(s stamp.Stamp) bool { return s.First > int64(at) })
			if err != nil {
				return err
			}
			_, together, err := t.acted(at, boottime.Now())
			if err != nil {
				return err
			}
			b.add(what, took(election.Instant(next.First).Sub(knew), perTakeover), took(together, overlapped))
			_, err = leader.Kill()
			return errors.Join(err, t.startAgain(ctx, leader))
		})
	})
}

// loseProgram removes the program file of the agent that leads, and kills the agent. It returns
// the instant just before that, and the one at which its end was known, to its keeper too.
func (r *rig) loseProgram(ctx context.Context, name string) (leader *hosts.Host, at, knew election.Instant, err error) {
	leader, _, err = r.settled(ctx, name, longLife)
	if err != nil {
		return nil, 0, 0, err
	}
	pid, err := pidOf(ctx, leader)
	if err != nil {
		return nil, 0, 0, err
	}
	conn, err := net.Dial("unix", leader.Config().Socket)
	if err != nil {
		return nil, 0, 0, err
	}
	defer conn.Close()
	process, err := proof.Of(conn.(*net.UnixConn), stamp.Now())
	if err != nil {
		return nil, 0, 0, err
	}
	defer process.Close()
	if _, err := leader.LoseProgram(); err != nil {
		return nil, 0, 0, err
	}
	at = boottime.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return nil, 0, 0, err
	}
	<-process.Gone()
	return leader, at, boottime.Now(), nil
}

// heir waits until another agent leads, and returns since when it does, by its own stamp.
func (r *rig) heir(ctx context.Context, former *hosts.Host) (election.Instant, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		for _, h := range r.Cluster.Hosts() {
			if h == former {
				continue
			}
			if e, err := asked(ctx, h, string(election.Default)); err == nil && e.IsLeader {
				entry, err := lastChange(ctx, h, string(election.Default))
				return election.Instant(entry.BoottimeNS), err
			}
		}
		if err := observe.Sleep(ctx, askEvery); err != nil {
			return 0, fmt.Errorf("wait for the next leader: %w", err)
		}
	}
}

// keepers measures what keepers cost while nothing happens.
func (b *bench) keepers(ctx context.Context) error {
	return b.quietOf(ctx, b.keeping(), func(r *rig, _ *hosts.Host) error {
		if err := observe.Sleep(ctx, min(idleSettle, 3*b.window())); err != nil {
			return err
		}
		all := r.Cluster.Hosts()
		before, err := switches(all)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := observe.Sleep(ctx, 3*b.window()); err != nil {
			return err
		}
		after, err := switches(all)
		if err != nil {
			return err
		}
		for i, h := range all {
			_, shared, err := readMemory(h.PID())
			if err != nil {
				return err
			}
			b.add("Keeper", value{Value: shared, Unit: pss}, value{Value: (after[i] - before[i]) / time.Since(began).Minutes(), Unit: "checks/min"})
		}
		return nil
	})
}

// switches returns how often the main thread of each host's newest process has gone to sleep.
func switches(all []*hosts.Host) ([]float64, error) {
	var counts []float64
	for _, h := range all {
		p, err := procfs.NewProc(h.PID())
		if err != nil {
			return nil, fmt.Errorf("read the switches of %s: %w", h.Name(), err)
		}
		status, err := p.NewStatus()
		if err != nil {
			return nil, fmt.Errorf("read the switches of %s: %w", h.Name(), err)
		}
		counts = append(counts, float64(status.VoluntaryCtxtSwitches))
	}
	return counts, nil
}
