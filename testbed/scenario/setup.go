package scenario

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// setting changes the configuration of an agent before its first start.
type setting func(*settings.Config)

// everybody is the key for the settings of all hosts.
const everybody = "all"

var errLaidOut = errors.New("it must come before the first host is started")

// before makes a command with one word, which must come before the first host is started.
// choose reports false for a word that is not wanted.
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
		if err := os.Chmod(value, 0o600); err != nil { // everybody could read a script's file
			return nil, fmt.Errorf("%s=%s: %w", key, value, err)
		}
	}
	if err := all[n].Set(new(settings.Config), value); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", key, value, err)
	}
	return func(c *settings.Config) { _ = all[n].Set(c, value) }, nil
}
