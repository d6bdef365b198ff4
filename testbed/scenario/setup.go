package scenario

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent"
)

// setting changes the configuration of an agent before its first start.
type setting struct {
	apply func(*agent.Config)
}

// everybody is the key of settings of all hosts.
const everybody = "all"

var errLaidOut = errors.New("it must come before the first host is started")

func hostsCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("want a number, as in: hosts 3")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > maxHosts {
		return "", fmt.Errorf("%q: want a number from 1 to %d", args[0], maxHosts)
	}
	if w.lab != nil {
		return "", errLaidOut
	}
	w.config.Agents = n
	if err := w.config.Check(); err != nil {
		return "", err
	}
	w.nameHosts(ts.Setenv)
	return "", nil
}

// choose is a command with one word before the first start.
func (w *world) choose(args []string, want string, choose func(word string)) (string, error) {
	if len(args) != 1 {
		return "", errors.New("want one word: " + want)
	}
	if w.lab != nil {
		return "", errLaidOut
	}
	choose(args[0])
	return "", w.config.Check()
}

func profileCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	return w.choose(args, "local, lan or wan", func(word string) { w.config.Profile = word })
}

func algorithmCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	return w.choose(args, "bully or ring", func(word string) { w.config.Algorithm = word })
}

func quorumCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if len(args) == 1 && args[0] != "on" && args[0] != "off" {
		return "", errors.New("want on or off")
	}
	return w.choose(args, "on or off", func(word string) { w.config.Quorum = word == "on" })
}

// disksCommand makes disks that can be filled and slowed.
func disksCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if len(args) != 1 || args[0] != "faulty" {
		return "", errors.New("want: disks faulty")
	}
	return w.choose(args, "faulty", func(string) { w.config.DiskFaults = true })
}

// setCommand sets configuration keys of hosts: set HOST… KEY=VALUE…
func setCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	if w.lab != nil {
		return "", errLaidOut
	}
	first := 0
	for first < len(args) {
		if _, _, err := pair(args[first]); err == nil {
			break
		}
		first++
	}
	names, err := w.names(args[:first])
	if err != nil {
		return "", err
	}
	if first == len(args) {
		return "", errors.New("want KEY=VALUE after the hosts")
	}
	for _, word := range args[first:] {
		key, value, _ := pair(word)
		apply, err := settingOf(key, value, ts.MkAbs)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			w.settings[name] = append(w.settings[name], setting{apply})
		}
	}
	return "", nil
}

// chosen are the settings that the testbed chooses itself.
var chosen = []string{"data-dir", "socket", "bind", "advertise", "gossip-port", "peer-port", "join"}

// settingOf reads one setting, named as in the agent's configuration file.
func settingOf(key, value string, abs func(string) string) (func(*agent.Config), error) {
	all := agent.Settings()
	n := slices.IndexFunc(all, func(s agent.Setting) bool { return s.Name == key && !slices.Contains(chosen, key) })
	if n < 0 {
		return nil, fmt.Errorf("%s=%s: the keys are those of the agent's configuration file, except %s", key, value, strings.Join(chosen, ", "))
	}
	if key == "key-file" {
		value = abs(value)
		if err := os.Chmod(value, 0o600); err != nil { // a script's files can be read by all
			return nil, fmt.Errorf("%s=%s: %w", key, value, err)
		}
	}
	if err := all[n].Set(new(agent.Config), value); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", key, value, err)
	}
	return func(c *agent.Config) { _ = all[n].Set(c, value) }, nil
}
