package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

	config   hosts.Config
	settings map[string][]setting // by host: what changes its configuration before the first start
	noNet    error                // why the hosts share the loopback interface; nil if each has its own network
	lab      *lab.Lab             // nil before the first start
	meter    *hiccup.Meter        // nil before the first start
	hooks    []*hooked            // the script's hooks

	began     election.Instant
	wall      time.Time
	acted     election.Instant // just before the last thing that was done to the hosts
	marked    election.Instant // the instant of the command mark: takeovers and counters count from it
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
	// fewHosts is how many agents can end one by one within closeLimit, each handing over to the next.
	fewHosts = 9
	// recent is how many lines a failure shows: the newest about what was seen.
	recent = 24
	// deliverySlack is how long after the agent's stamp a report may arrive here.
	deliverySlack = 700 * time.Millisecond
)

func newWorld(ctx context.Context, o Options, file string, env *testscript.Env) (*world, error) {
	base := filepath.Base(file)
	w := &world{
		o: o, name: strings.TrimSuffix(strings.TrimSuffix(base, ".txt"), ".txtar"),
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

// close ends everything, checks what can be checked only at the end, and makes the recording.
func (w *world) close() {
	if w.t.failed && w.failure == "" {
		w.failure = "the script failed"
	}
	if w.lab != nil && w.failure != "" {
		w.excuse = w.excused() // now, while the programs still run
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
			stop() // kill the agents: clean ends of many take long, since each hands over to the next
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

// setting changes the configuration of an agent before its first start.
type setting func(*settings.Config)

// everybody is the key for the settings of all hosts.
const everybody = "all"

var errLaidOut = errors.New("it must come before the first host is started")

// before makes a command with one word. The command must come before the first start of a host.
// choose returns false for a word that is not allowed.
func before(want string, choose func(c *hosts.Config, word string) bool) command {
	return func(w *world, ts *testscript.TestScript, args []string) (string, error) {
		switch {
		case len(args) != 1:
			return "", errors.New("want one word: " + want)
		case w.lab != nil:
			return "", errLaidOut
		case !choose(&w.config, args[0]):
			return "", fmt.Errorf("%q: want %s", args[0], want)
		}
		w.nameHosts(ts.Setenv)
		return "", w.config.Check()
	}
}

func hostCount(c *hosts.Config, word string) (ok bool) {
	n, err := strconv.Atoi(word)
	c.Agents = n
	return err == nil && n >= 1 && n <= maxHosts
}

func profile(c *hosts.Config, word string) bool {
	c.Profile = word
	return true // Check knows which profiles exist
}

func algorithm(c *hosts.Config, word string) bool {
	c.Algorithm = word
	return true
}

func quorum(c *hosts.Config, word string) bool {
	c.Quorum = word == "on"
	return word == "on" || word == "off"
}

// disks gives the hosts disks that can be filled and slowed down.
func disks(c *hosts.Config, word string) bool {
	c.DiskFaults = true
	return word == "faulty"
}

// setCommand sets configuration keys of hosts: set HOST… KEY=VALUE…
func setCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	if w.lab != nil {
		return "", errLaidOut
	}
	args, pairs := options(args)
	names, err := w.names(args)
	if err != nil {
		return "", err
	}
	if len(pairs) == 0 {
		return "", errors.New("want KEY=VALUE after the hosts")
	}
	for _, word := range pairs {
		key, value, err := pair(word)
		if err != nil {
			return "", err
		}
		apply, err := settingOf(key, value, ts.MkAbs)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			w.settings[name] = append(w.settings[name], apply)
		}
	}
	return "", nil
}

// chosen are the settings that only the testbed may choose.
var chosen = []string{"data-dir", "socket", "bind", "advertise", "gossip-port", "peer-port", "join"}

// settingOf reads one setting, with its name in the agent's configuration file.
func settingOf(key, value string, abs func(string) string) (func(*settings.Config), error) {
	all := settings.All()
	n := slices.IndexFunc(all, func(s settings.Setting) bool { return s.Name == key && !slices.Contains(chosen, key) })
	if n < 0 {
		return nil, fmt.Errorf("%s=%s: the keys are those of the agent's configuration file, except %s", key, value, strings.Join(chosen, ", "))
	}
	if key == "key-file" {
		value = abs(value)
		if err := os.Chmod(value, 0o600); err != nil { // testscript lets other users read the file, which an agent refuses
			return nil, fmt.Errorf("%s=%s: %w", key, value, err)
		}
	}
	if err := all[n].Set(new(settings.Config), value); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", key, value, err)
	}
	return func(c *settings.Config) { _ = all[n].Set(c, value) }, nil
}
