package main

import (
	"errors"
	"os"
	"slices"

	"github.com/doyen-election/doyen/agent/settings"
)

// gathered is a configuration and where each of its values came from, so that an error
// can point at the place to change.
type gathered struct {
	config settings.Config
	source map[string]string // by setting: "DOYEN_LEASE", "doyen.yaml:3: lease"
	unread bool              // the file: nothing of it is in config
	from   string            // the file, or what else was read
}

// gather puts the configuration together. A flag comes before the environment, that before
// the file, and that before the default. A variable that is set to nothing counts as unset.
// A wrong flag is a usage error, anything else that is wrong a *settings.Error.
func gather(i *invocation) (gathered, error) {
	g, wrong := gatherAll(i)
	if len(wrong) > 0 {
		return g, wrong[0]
	}
	return g, nil
}

// gatherAll is gather that goes on after a mistake.
func gatherAll(i *invocation) (gathered, []error) {
	path := i.String("config")
	if path == "" {
		path = i.getenv("DOYEN_CONFIG")
	}
	if path != "" || i.IsSet("config") {
		return gatherFile(i, path)
	}
	return gatherFrom(i, "", nil)
}

func gatherFile(i *invocation, path string) (gathered, []error) {
	text, err := loadFile(path)
	if err != nil {
		return gathered{unread: true, from: path}, []error{err} // what would follow from the defaults helps nobody
	}
	return gatherFrom(i, path, text)
}

// packaged is the configuration file of the packages.
const packaged = "/etc/doyen/agent.yaml"

// gatherHere is gatherAll for commands that examine the agent of this host. If they are given
// nothing that describes an agent, it is the one that runs here, else the one of the packages.
func gatherHere(i *invocation) (gathered, []error) {
	given := i.IsSet("config") || i.getenv("DOYEN_CONFIG") != "" || slices.ContainsFunc(settings.All(), func(s settings.Setting) bool {
		return s.Name != "socket" && (i.IsSet(s.Name) || i.getenv(s.Env()) != "")
	})
	if given {
		return gatherAll(i)
	}
	ctx, cancel := i.question()
	defer cancel()
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

// gatherFrom puts the configuration together from a text, flags and the environment.
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

// override takes the setting from its flag, else from the environment.
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

// blame names the variable, or the line of the file, that a bad value came from: the error
// names a flag, even if that was not given.
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
