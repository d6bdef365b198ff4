package scenario

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/lab"
)

type hooked struct{ name, host, election string }

// hookCommand: hook NAME HOST ELECTION. The host's hook acts from when its host leads, until doyen
// act, which the agent's keeper starts, ends it.
func hookCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if len(args) != 3 {
		return "", errors.New("want a name, a host and an election")
	}
	if w.lab != nil {
		return "", errLaidOut
	}
	name, of := args[0], args[2]
	taken := slices.ContainsFunc(w.hooks, func(h *hooked) bool { return h.name == name })
	if taken || slices.Contains(w.config.Names(), name) {
		return "", fmt.Errorf("the name %q is taken", name)
	}
	hosts, err := w.names(args[1:2])
	if err != nil {
		return "", err
	}
	if len(hosts) != 1 {
		return "", errors.New("want one host: each has its own hook")
	}
	w.hooks = append(w.hooks, &hooked{name: name, host: hosts[0], election: of})
	w.settings[hosts[0]] = append(w.settings[hosts[0]], func(c *settings.Config) {
		dir := filepath.Dir(c.Socket)
		c.Keeper = true // it starts what runs the hook
		act := strings.Join(append([]string{w.o.Actor}, actor.Command(lab.StampsIn(dir, name))...), " ")
		command := fmt.Sprintf(`[ "$DOYEN_EVENT" != leading ] || exec %s > %s`, act, saidIn(dir, name))
		if of == string(election.Default) {
			c.OnChange = command
			return
		}
		if c.Elections == nil {
			c.Elections = map[string]settings.ElectionConfig{}
		}
		c.Elections[of] = settings.ElectionConfig{OnChange: command}
	})
	return "", nil
}

func saidIn(dir, name string) string { return filepath.Join(dir, "said-"+name) }

// layOutHooks makes the pipes to which runs of hooks report.
func (w *world) layOutHooks() error {
	for _, h := range w.hooks {
		host, err := w.oneHost(h.host)
		if err != nil {
			return err
		}
		if _, err := w.lab.Hook(h.name, h.election, host, saidIn(filepath.Dir(host.Log()), h.name)); err != nil {
			return err
		}
	}
	return nil
}
