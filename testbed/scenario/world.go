package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hiccup"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// world belongs to one play of a script: its hosts, what was done to them, and what was seen.
// The script's goroutine owns all of it.
type world struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	name   string
	t      *scriptT
	lines  []scriptLine // the lines of the script that have not run yet

	config   hosts.Config
	settings map[string][]setting // by host, for the first start
	noNet    error                // why the hosts have no networks of their own
	lab      *lab.Lab             // nil before the first start
	meter    *hiccup.Meter        // nil before the first start
	hooks    []*hooked            // hooks to be laid out

	began     election.Instant
	wall      time.Time
	acted     election.Instant // just before the last thing that was done to the hosts
	marked    election.Instant // from when on takeovers and counters are counted
	counters  map[string]float64
	afflicted map[string]map[string]bool // by host: the faults that ail it
	steps     []observe.Step
	failure   string
	former    hosts.Binary // of the previous release, once it is built
	excuse    string       // the machine's pauses that leave a failure undecided
	recording *observe.Recording
}

type worldKey struct{}

const (
	closeLimit = 3 * time.Second // how long agents may take to end by themselves
	maxHosts   = 64
	pollBase   = 50 * time.Millisecond
	// fewHosts is how many agents can hand over to each other one by one within closeLimit.
	fewHosts = 9
	// recent is how many of the newest lines of what was seen a failure shows.
	recent = 24
	// deliverySlack is how late a report may arrive here after an agent has stamped it.
	deliverySlack = 700 * time.Millisecond
)

func newWorld(ctx context.Context, o Options, file string, env *testscript.Env) (*world, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(file)
	w := &world{
		o: o, name: strings.TrimSuffix(strings.TrimSuffix(base, ".txt"), ".txtar"), lines: scriptLines(string(text)),
		settings: map[string][]setting{}, afflicted: map[string]map[string]bool{},
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

func (w *world) nameHosts(setenv func(key, value string)) {
	for i, name := range w.config.Names() {
		setenv(fmt.Sprintf("h%d", i+1), name)
	}
}

// ready lays out the cluster, if that has not happened yet.
func (w *world) ready() error {
	if w.lab != nil {
		return nil
	}
	config := w.config
	config.Adjust = func(i int, c *settings.Config) {
		names := w.config.Names()
		for _, s := range slices.Concat(w.settings[everybody], w.settings[names[i]]) {
			s(c)
		}
	}
	n := time.Duration(config.Agents)
	l, err := lab.New(w.ctx, config, lab.Options{Poll: max(pollBase, n*10*time.Millisecond), Retry: n * time.Millisecond})
	if err != nil {
		return err
	}
	w.lab = l
	disk := l.Cluster.Dir()
	if w.config.DiskFaults {
		disk = "" // the agents have other disks
	}
	if w.meter, err = hiccup.Start(disk); err != nil {
		w.t.Log(err)
	}
	return w.layOutHooks()
}

// close ends everything, judges what can be judged only now, and makes the recording.
func (w *world) close() {
	if w.t.failed && w.failure == "" {
		w.failure = "the script failed"
	}
	if w.lab != nil && w.failure != "" {
		w.excuse = w.excused() // as long as the programs run
	}
	if w.lab != nil {
		for _, p := range w.lab.Programs() {
			p.End()
		}
		w.recording = w.record()
		if w.failure != "" {
			w.t.Log(w.keepLogs())
		}
		w.reportHiccups()
		w.meter.Stop()
		ctx, stop := context.WithTimeout(context.Background(), closeLimit)
		if w.failure != "" || len(w.lab.Cluster.Hosts()) > fewHosts {
			stop() // many agents that hand over to each other one by one take long
		}
		w.cancel()
		if err := w.lab.Close(ctx); err != nil {
			w.t.Log("close:", err)
			w.t.failed, w.excuse = true, ""
		}
		stop()
	}
	w.cancel()
}

// keepLogs copies all logs to a folder that stays, and returns a text with its name.
func (w *world) keepLogs() string {
	dir, err := os.MkdirTemp(w.o.Logs, "doyen-scenario-"+w.name+"-")
	if err != nil {
		return fmt.Sprintf("the logs are lost: %v", err)
	}
	if err := w.lab.KeepLogs(dir); err != nil {
		return fmt.Sprintf("logs: %s (some are missing: %v)", dir, err)
	}
	return "logs: " + dir
}
