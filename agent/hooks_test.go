package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	doyen "github.com/doyen-election/doyen/client"
	beside "github.com/doyen-election/doyen/internal/act"
)

// From the start to the stop, each election's own command reads what happened.
func TestTheHookReadsEachChangeAsJSON(t *testing.T) {
	c := lone(t)
	trail := filepath.Join(t.TempDir(), "trail")
	c.OnChange = "cat >> " + trail + ".all"
	c.Elections = map[string]settings.ElectionConfig{"default": {OnChange: "cat >> " + trail}, "payments": {OnChange: "cat >> " + trail + ".payments; echo >" + trail + ".ran"}}
	if err := syscall.Mkfifo(trail+".ran", 0o600); err != nil {
		t.Fatal(err)
	}
	ran, err := os.OpenFile(trail+".ran", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ran.Close()
	client, _, stop := start(t, c)
	follow(t, client, leads)
	if _, err := ran.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(trail)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		var change api.Change
		if err := json.Unmarshal([]byte(line), &change); err != nil || change.BoottimeNS == 0 || change.Time.IsZero() || change.Election != "default" {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, change.Type+" "+change.Reason)
	}
	// A run that is outdated before its turn is skipped, but for the end of the lead.
	if all := strings.Join(got, ", "); !regexp.MustCompile(`^(no_leader doyen act has connected, )?(leader elected, )?no_leader shut down$`).MatchString(all) {
		t.Errorf("the hook read: %s", all)
	}
	if text, err := os.ReadFile(trail + ".payments"); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("an election of its own read %q, %v", text, err)
	}
	if _, err := os.Stat(trail + ".all"); err == nil {
		t.Error("the command of all was run for an election that has its own")
	}
}

// actBeside runs what acts beside the agent, and returns what ends that. It reads what the agent has
// read last.
func actBeside(first settings.Config, around *agent.Process, out io.Writer) (end func()) {
	var newest atomic.Pointer[settings.Config]
	newest.Store(&first)
	if reread := around.Reread; reread != nil {
		around.Reread = func() (settings.Config, error) {
			again, err := reread()
			if err == nil {
				newest.Store(&again)
			}
			return again, err
		}
	}
	work := func(c settings.Config) beside.Work {
		return beside.Work{Hooks: c.Hooks(), Checks: c.Checks(), Failures: c.HookFailures}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = beside.Run(ctx, beside.Config{Client: doyen.New(first.Socket), Work: work(first), Logger: slog.New(slog.NewTextHandler(out, nil)),
			Reread: func() (beside.Work, error) { return work(*newest.Load()), nil }})
	}()
	return func() {
		cancel()
		<-ended
	}
}
