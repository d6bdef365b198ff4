package scenario

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/election"
)

// hooked is a hook that a host's agent is to have.
type hooked struct{ name, host, election string }

// hookCommand: hook NAME HOST ELECTION. The agent's hook acts from when it is told
// that its host leads until somebody ends it.
func hookCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if len(args) != 3 {
		return "", errors.New("want a name, a host and an election")
	}
	if w.cluster != nil {
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
	w.settings[hosts[0]] = append(w.settings[hosts[0]], setting{func(c *agent.Config) {
		dir := filepath.Dir(c.Socket)
		command := fmt.Sprintf(`[ "$DOYEN_EVENT" != leading ] || exec %s %s %s > %s`, w.o.Actor, actArgument, stampsIn(dir, name), saidIn(dir, name))
		if of == string(election.Default) {
			c.OnChange = command
			return
		}
		if c.Elections == nil {
			c.Elections = map[string]agent.ElectionConfig{}
		}
		c.Elections[of] = agent.ElectionConfig{OnChange: command}
	}})
	return "", nil
}

func stampsIn(dir, name string) string { return filepath.Join(dir, "stamps-"+name) }

func saidIn(dir, name string) string { return filepath.Join(dir, "said-"+name) }

// layOutHooks makes what the runs of hooks say heard.
func (w *world) layOutHooks() error {
	for _, h := range w.hooks {
		host, err := w.oneHost(h.host)
		if err != nil {
			return err
		}
		dir := filepath.Dir(host.Log())
		path := saidIn(dir, h.name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			return fmt.Errorf("hook %s: %w", h.name, err)
		}
		said, err := os.OpenFile(path, os.O_RDWR, 0) // so that it does not end with a run
		if err != nil {
			return fmt.Errorf("hook %s: %w", h.name, err)
		}
		p := &program{name: h.name, election: h.election, host: host, said: said, stamps: stampsIn(dir, h.name), ended: make(chan struct{})}
		w.programs[h.name] = p
		w.watcher.follow(h.election)
		go func() {
			defer close(p.ended)
			for lines := bufio.NewScanner(said); lines.Scan(); {
				p.hear(w.watcher, lines.Text())
			}
		}()
	}
	return nil
}
