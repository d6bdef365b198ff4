package main

import (
	"cmp"
	"errors"
	"os"
	"slices"

	"github.com/doyen-election/doyen/agent/settings"
)

// gathered is a configuration, and the source of each value: an error can then name the place to change.
type gathered struct {
	config settings.Config
	source map[string]string // by setting, for example "DOYEN_LEASE" or "doyen.yaml:3: lease"
	unread bool              // the file can't be read, so config has nothing of it
	from   string            // the path of the file, or what else was read
}

// gather collects the configuration. A flag has priority over the environment, the environment over the
// file, and the file over the default. An empty variable counts as not set. The error is a usage error
// for a wrong flag, a *settings.Error for everything else.
func gather(i *invocation) (gathered, error) {
	g, wrong := gatherAll(i)
	return g, cmp.Or(wrong...)
}

// gatherAll does what gather does, but goes on after a mistake and returns all mistakes.
func gatherAll(i *invocation) (gathered, []error) {
	path := cmp.Or(i.String("config"), i.getenv("DOYEN_CONFIG"))
	if path != "" || i.IsSet("config") {
		return gatherFile(i, path)
	}
	return gatherFrom(i, "", nil)
}

func gatherFile(i *invocation, path string) (gathered, []error) {
	text, err := loadFile(path)
	if err != nil {
		return gathered{unread: true, from: path}, []error{err} // mistakes that only follow from the defaults are not reported
	}
	return gatherFrom(i, path, text)
}

// packaged is the configuration file that the packages of this product install.
const packaged = "/etc/doyen/agent.yaml"

// gatherHere is gatherAll for commands that examine this host's agent. If the command line or the environment
// describes no agent, it takes the configuration of the agent that answers here. If none answers, it takes that
// of the packages.
func gatherHere(i *invocation) (gathered, []error) {
	given := i.IsSet("config") || i.getenv("DOYEN_CONFIG") != "" || slices.ContainsFunc(settings.All(), func(s settings.Setting) bool {
		return s.Name != "socket" && (i.IsSet(s.Name) || i.getenv(s.Env()) != "")
	})
	if given {
		return gatherAll(i)
	}
	ctx := i.question()
	c := i.client()
	defer c.Close()
	if text, err := c.Get(ctx, "/v1/debug/configuration"); err == nil {
		return gatherFrom(i, "as the running agent has it", text)
	}
	if _, err := os.Stat(packaged); err == nil {
		return gatherFile(i, packaged)
	}
	return gatherAll(i)
}

// gatherFrom collects the configuration from a text, flags and the environment.
func gatherFrom(i *invocation, from string, text []byte) (g gathered, wrong []error) {
	g = gathered{config: settings.Default(), source: map[string]string{}, from: from}
	wrong = g.readText(from, text)
	if g.unread = len(wrong) > 0 && len(g.source) == 0; g.unread {
		return g, wrong
	}
	for _, s := range settings.All() {
		if err := g.override(i, s); err != nil {
			wrong = append(wrong, err)
		}
	}
	g.config.ResetGenesis = i.Bool("reset-genesis")
	return g, wrong
}

// override sets the setting from its flag, or if that is not given, from the environment.
func (g *gathered) override(i *invocation, s settings.Setting) error {
	if i.IsSet(s.Name) {
		delete(g.source, s.Name)
		if list, ok := s.Field(&g.config).(*[]string); ok {
			*list = i.StringSlice(s.Name)
			return nil
		}
		if err := s.Set(&g.config, i.String(s.Name)); err != nil {
			return usage("`doyen agent --help` explains each flag", "agent: --%s: %v", s.Name, err)
		}
		return nil
	}
	text := i.getenv(s.Env())
	if text == "" {
		return nil
	}
	g.source[s.Name] = s.Env()
	if err := s.Set(&g.config, text); err != nil {
		return &settings.Error{Problem: s.Env() + ": " + err.Error()}
	}
	return nil
}

// blame names the source of a bad value: the variable, or the line of the file. The error itself names the flag
// even if that was not given.
func (g *gathered) blame(err error) error {
	bad, ok := errors.AsType[*settings.Error](err)
	if !ok {
		return err
	}
	if source := g.source[bad.Flag]; source != "" {
		return &settings.Error{Problem: source + ": " + bad.Problem, Hint: bad.Hint, Cause: bad.Cause}
	}
	return bad
}
