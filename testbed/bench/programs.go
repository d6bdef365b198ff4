package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// lookEvery is how often stamps are looked at. What is measured is in them, so it
// adds nothing.
const lookEvery = 2 * time.Millisecond

// troupe is a cluster with a program on each host, all in one election.
type troupe struct {
	*rig
	dir     string // of the stamps
	command func(h *hosts.Host, dir string) (*exec.Cmd, error)
	actors  map[string]*actor // by host
}

// actor is one program's process.
type actor struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// blow is something that ends a program's acting.
type blow func(ctx context.Context, t *troupe, host string, acting stamp.Stamp) error

// programs measures how soon another program acts.
func (b *bench) programs(ctx context.Context) error {
	dir, err := hosts.NewDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	few := max(fewestRounds, b.o.Rounds*3/10)
	kills := func(key, what string, rounds int, command func(*hosts.Host, string) (*exec.Cmd, error), hit blow) error {
		return b.blows(ctx, key, what, rounds, []Target{{Of: ofMedian, AtMost: 15}, {Of: ofP99, AtMost: 40}}, dir.Path, command, hit)
	}
	campaign := func(h *hosts.Host, dir string) (*exec.Cmd, error) { return campaigning(h.Config().Socket, dir) }
	if err := kills("program_kill", "program with a campaign, kill -9 → next program elected", 4*b.o.Rounds, campaign, killActor); err != nil {
		return err
	}
	if b.binary != "" {
		stamps, err := hosts.BuildShipped(ctx, dir.Path, commandPackage)
		if err != nil {
			return err
		}
		run := func(h *hosts.Host, dir string) (*exec.Cmd, error) {
			return exec.Command(b.binary, "run", "--socket", h.Config().Socket, "--restart", "never", "--quiet", contested, "--", stamps, dir), nil
		}
		if err := kills("program_run_command_kill", "CMD of `doyen run --restart never`, kill -9 → next CMD started", b.o.Rounds, run, killCommand); err != nil {
			return err
		}
		if err := kills("program_run_kill", "`doyen run`, kill -9 → next CMD started", b.o.Rounds, run, killActor); err != nil {
			return err
		}
	}
	hand := []Target{{Of: ofMedian, AtMost: 10}}
	if err := b.blows(ctx, "program_resign", "resign → next program elected", few, hand, dir.Path, campaign, resignProgram); err != nil {
		return err
	}
	return b.blows(ctx, "program_transfer", "transfer → next program elected", few, hand, dir.Path, campaign, transferProgram)
}

// blows measures one blow, round after round, and whether two programs ever acted at once.
func (b *bench) blows(ctx context.Context, key, what string, rounds int, targets []Target, dir string,
	command func(*hosts.Host, string) (*exec.Cmd, error), hit blow) error {
	took, overlaps, err := b.replacements(ctx, what, rounds, dir, command, hit)
	b.add(key, what, "ms", &targets[0], took)
	b.report.Results[len(b.report.Results)-1].Also = targets[1:]
	b.add(key+"_overlap", "two programs at once in these rounds, by their own stamps", "ms", &Target{Of: ofMax}, overlaps)
	return err
}

func (b *bench) replacements(ctx context.Context, what string, rounds int, dir string,
	command func(*hosts.Host, string) (*exec.Cmd, error), hit blow) (took, overlaps []float64, err error) {
	t, err := b.newTroupe(ctx, dir, command)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for missed := 0; len(took) < rounds; {
		d, overlap, err := t.round(ctx, hit)
		if missesTheLeader(err) && missed < rounds {
			missed++
			continue
		}
		if err != nil {
			return took, overlaps, fmt.Errorf("%s, round %d: %w", what, len(took)+1, err)
		}
		took, overlaps = append(took, millis(d)), append(overlaps, millis(overlap))
		b.progress(what, len(took), rounds)
	}
	return took, overlaps, nil
}

// missesTheLeader reports a round that measured nothing: the lead was lost, or
// given up already, before it was asked for, as on a machine that stands still.
func missesTheLeader(err error) bool {
	refused, ok := errors.AsType[*client.APIError](err)
	return ok && (refused.Code == api.CodeNotLeader || refused.Code == api.CodeBusy)
}

func (b *bench) newTroupe(ctx context.Context, dir string, command func(*hosts.Host, string) (*exec.Cmd, error)) (*troupe, error) {
	r, err := b.newRig(ctx, b.o.Profile, 0)
	if err != nil {
		return nil, err
	}
	t := &troupe{rig: r, command: command, actors: map[string]*actor{}}
	if t.dir, err = os.MkdirTemp(dir, "stamps"); err != nil {
		return nil, errors.Join(err, t.close())
	}
	if _, err = r.agree(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	r.unwatch()
	for _, h := range r.cluster.Hosts() {
		if err := t.start(h); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	return t, nil
}

// start starts the program of a host.
func (t *troupe) start(h *hosts.Host) error {
	dir := filepath.Join(t.dir, h.Name())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("start a program: %w", err)
	}
	cmd, err := t.command(h, dir)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "..", h.Name()+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start a program: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := h.Exec(cmd); err != nil {
		return err
	}
	a := &actor{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(a.ended)
	}()
	t.actors[h.Name()] = a
	return nil
}

func (t *troupe) close() error {
	for _, a := range t.actors {
		_ = a.cmd.Process.Kill() // it may be gone
		<-a.ended
	}
	return t.rig.close()
}

// newest returns the program that acts: the newest stamp, and its host.
func (t *troupe) newest() (host string, found stamp.Stamp, err error) {
	for _, h := range t.cluster.Hosts() {
		all, err := stamp.Read(filepath.Join(t.dir, h.Name()))
		if err != nil {
			return "", stamp.Stamp{}, err
		}
		for _, s := range all {
			if s.First > found.First {
				host, found = h.Name(), s
			}
		}
	}
	return host, found, nil
}

// await looks at the stamps until one fits.
func (t *troupe) await(ctx context.Context, what string, fits func(stamp.Stamp) bool) (host string, found stamp.Stamp, err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if host, found, err = t.newest(); err != nil || found.First > 0 && fits(found) {
			return host, found, err
		}
		if err := sleep(ctx, lookEvery); err != nil {
			return "", stamp.Stamp{}, err
		}
	}
	return "", stamp.Stamp{}, fmt.Errorf("wait for %s: not within %s", what, patience)
}

// round hits the program that acts, and returns how long it took until another
// acted, and for how long both did.
func (t *troupe) round(ctx context.Context, hit blow) (took, overlap time.Duration, err error) {
	for _, h := range t.cluster.Hosts() {
		select {
		case <-t.actors[h.Name()].ended:
			if err := t.start(h); err != nil {
				return 0, 0, err
			}
		default:
		}
	}
	settle := t.lease/3 + time.Duration(t.rng.Int64N(int64(t.lease/4))) // all stand again, and any moment may be hit
	if err := sleep(ctx, settle); err != nil {
		return 0, 0, err
	}
	host, acting, err := t.await(ctx, "a program that acts", func(s stamp.Stamp) bool { return stamp.Now()-s.Last < int64(settle) })
	if err != nil {
		return 0, 0, err
	}
	if err := t.call(ctx, host, rivalled); err != nil {
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
	before, err := stamp.Read(filepath.Join(t.dir, host))
	if err != nil {
		return 0, 0, err
	}
	i := slices.IndexFunc(before, func(s stamp.Stamp) bool { return s.PID == acting.PID && s.Term == acting.Term })
	return time.Duration(next.First - int64(at)), max(0, time.Duration(before[i].Last-next.First)), nil
}

// rivalled waits until the agent knows of another candidate: one that was started
// anew stands a moment later.
func rivalled(ctx context.Context, c *client.Client) error {
	for {
		e, err := c.Election(ctx, contested, client.ElectionOptions{})
		if err != nil || len(e.Candidates) > 1 {
			return err
		}
		if err := sleep(ctx, lookEvery); err != nil {
			return fmt.Errorf("wait for a second candidate: %w", err)
		}
	}
}

func killActor(_ context.Context, t *troupe, host string, _ stamp.Stamp) error {
	return t.actors[host].cmd.Process.Kill()
}

func killCommand(_ context.Context, _ *troupe, _ string, acting stamp.Stamp) error {
	return syscall.Kill(acting.PID, syscall.SIGKILL)
}

func resignProgram(ctx context.Context, t *troupe, host string, _ stamp.Stamp) error {
	return t.call(ctx, host, func(ctx context.Context, c *client.Client) error {
		_, err := c.Resign(ctx, contested)
		return err
	})
}

func transferProgram(ctx context.Context, t *troupe, host string, _ stamp.Stamp) error {
	to := host
	for to == host {
		to = t.cluster.Hosts()[t.rng.IntN(len(t.cluster.Hosts()))].Name()
	}
	return t.call(ctx, host, func(ctx context.Context, c *client.Client) error {
		_, err := c.Transfer(ctx, contested, to)
		return err
	})
}

func (t *troupe) call(ctx context.Context, host string, do func(context.Context, *client.Client) error) error {
	h, _ := t.cluster.Host(host)
	c := client.New(h.Config().Socket)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return do(ctx, c)
}
