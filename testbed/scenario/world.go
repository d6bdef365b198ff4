package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hiccup"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// world is one script's: its hosts, what was done to them, and what was seen.
// The script's goroutine owns all of it but what the watcher guards.
type world struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	name   string
	t      *scriptT
	lines  []scriptLine // of the script, those that come

	config   hosts.Config
	settings map[string][]setting // by host, for its start
	noNet    error                // why there are no networks of their own
	cluster  *hosts.Cluster       // nil before the first start
	watcher  *watcher
	meter    *hiccup.Meter // nil before the first start
	programs map[string]*program
	hooks    []*hooked // to be laid out

	began     election.Instant
	wall      time.Time
	acted     election.Instant // just before the newest thing done to the hosts
	marked    election.Instant // since when takeovers and counters are counted
	counters  map[string]float64
	afflicted map[string]map[string]bool // hosts, by what ails them
	faults    []observe.Fault
	steps     []observe.Step
	samples   []observe.MessageSample
	failure   string
	excuse    string // what the machine did that leaves a failure undecided
	recording *observe.Recording
}

type worldKey struct{}

const (
	closeLimit = 3 * time.Second // for agents to end by themselves
	maxHosts   = 64
)

func newWorld(ctx context.Context, o Options, file string, env *testscript.Env) (*world, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(file)
	w := &world{
		o: o, name: strings.TrimSuffix(strings.TrimSuffix(base, ".txt"), ".txtar"), lines: scriptLines(string(text)),
		settings: map[string][]setting{}, programs: map[string]*program{}, afflicted: map[string]map[string]bool{},
		began: boottime.Now(), wall: time.Now().UTC(), counters: map[string]float64{},
		config: hosts.Config{Agents: 3, Algorithm: "bully", Profile: "lan", Quorum: true, Program: o.Binary, Seed: o.Seed},
	}
	t, ok := env.T().(*scriptT)
	if !ok {
		return nil, errors.New("play a script: not on this package's T")
	}
	w.t = t
	w.config.Net = hosts.Loopback
	if !o.Loopback {
		w.config.Net, w.noNet = hosts.BestNet()
	} else {
		w.noNet = errors.New("it was asked to stay on the loopback interface")
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	env.Values[worldKey{}] = w
	env.Defer(w.close)
	w.nameHosts(env.Setenv)
	return w, nil
}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

// nameHosts sets $h1, $h2 and so on.
func (w *world) nameHosts(setenv func(key, value string)) {
	for i, name := range w.config.Names() {
		setenv(fmt.Sprintf("h%d", i+1), name)
	}
}

// ready lays the cluster out, if it is not yet.
func (w *world) ready() error {
	if w.cluster != nil {
		return nil
	}
	config := w.config
	config.Adjust = func(i int, c *agent.Config) {
		names := w.config.Names()
		for _, s := range slices.Concat(w.settings[everybody], w.settings[names[i]]) {
			s.apply(c)
		}
	}
	exits := make(chan hosts.Exit, maxHosts)
	config.OnExit = func(e hosts.Exit) {
		select {
		case exits <- e:
		case <-w.ctx.Done():
		}
	}
	cluster, err := hosts.New(config)
	if err != nil {
		return err
	}
	w.cluster = cluster
	disk := cluster.Dir()
	if w.config.DiskFaults {
		disk = "" // the agents have others
	}
	if w.meter, err = hiccup.Start(disk); err != nil {
		w.t.Log(err)
	}
	w.watcher = watch(w.ctx, cluster, exits)
	return w.layOutHooks()
}

// close ends everything, judges what can only be judged then, and makes the
// recording.
func (w *world) close() {
	if w.t.failed && w.failure == "" {
		w.failure = "the script failed"
	}
	if w.cluster != nil && w.failure != "" {
		w.excuse = w.excused() // while the programs run
	}
	for _, p := range w.programs {
		p.end(w)
	}
	if w.cluster != nil {
		w.recording = w.record()
		if w.failure != "" {
			w.t.Log(w.keepLogs())
		}
		w.tellHiccups()
		w.meter.Stop()
		ctx, stop := context.WithTimeout(context.Background(), closeLimit)
		if w.failure != "" || len(w.cluster.Hosts()) > 9 {
			stop() // many that hand over to each other one by one take their time
		}
		w.cancel()
		if err := w.cluster.Close(ctx); err != nil {
			w.t.Log("close:", err)
			w.t.failed, w.excuse = true, ""
		}
		stop()
		w.watcher.wait()
		w.awaitPrograms()
	}
	w.cancel()
}

// awaitPrograms waits until the programs and all that they started are gone.
func (w *world) awaitPrograms() {
	late := time.After(closeLimit)
	for _, p := range w.programs {
		select {
		case <-p.ended:
		case <-late:
			w.t.Log("close: program " + p.name + " has left a process behind")
			w.t.failed, w.excuse = true, ""
			return
		}
	}
}

// keepLogs copies the logs of all hosts and programs to a directory that stays,
// once, and says where.
func (w *world) keepLogs() string {
	if w.cluster == nil {
		return "no agent was started"
	}
	dir, err := os.MkdirTemp(w.o.Logs, "doyen-scenario-"+w.name+"-")
	if err != nil {
		return fmt.Sprintf("the logs are lost: %v", err)
	}
	for _, h := range w.cluster.Hosts() {
		err = errors.Join(err, copyFile(filepath.Join(dir, h.Name()+".log"), h.Log()))
	}
	for name, p := range w.programs {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "program-"+name+".log"), []byte(p.transcript(w.watcher)), 0o644))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "seen.txt"), []byte(w.watcher.account(0)), 0o644))
	if err != nil {
		return fmt.Sprintf("logs: %s (some are missing: %v)", dir, err)
	}
	return "logs: " + dir
}

// copyFile copies a file; one that does not exist (its host was never started)
// is left out.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
