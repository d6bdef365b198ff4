package agent_test

import (
	"bufio"
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
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	doyen "github.com/doyen-election/doyen/client"
	beside "github.com/doyen-election/doyen/internal/act"
	"github.com/doyen-election/doyen/testbed/executable"
)

// Each election's own hook reads every change, from the start to the stop.
func TestTheHookReadsEachChangeAsJSON(t *testing.T) {
	c := lone(t)
	trail := filepath.Join(t.TempDir(), "trail")
	c.OnChange = executable.Script(t, "cat >> "+trail+".all")
	c.Elections = map[string]settings.ElectionConfig{"default": {OnChange: executable.Script(t, "cat >> "+trail)}, "payments": {OnChange: executable.Script(t, "cat >> "+trail+".payments; echo >"+trail+".ran")}}
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
	// A run that is outdated before its turn is skipped, except the run for the end of a leadership.
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

// The hook's run for the end of a leadership hangs until the test ends it. Until then no other agent may lead.
// The lease is so long that its end plays no part.
func TestTheHookHasRunBeforeTheTermIsReleased(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := func(name string) *os.File {
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	said, end := pipe("said"), pipe("end")
	clients, _, first := three(t, func(c *settings.Config) {
		c.Lease = time.Minute
		c.OnChange = executable.Script(t, "cd "+dir+"; led=led-by-"+c.Name+"; [ $DOYEN_EVENT != leading ] || touch $led; "+ // followers get the event none too
			"[ $DOYEN_EVENT = none ] && rm $led 2>/dev/null || exit 0; echo undoes >said; read go <end; echo undone >said")
	})
	leader := int(first.Leader.Name[0] - 'a')
	successor := clients[(leader+1)%3]
	waitForFile(t, filepath.Join(dir, "led-by-"+first.Leader.Name))
	lines := bufio.NewReader(said)
	go func() { // the answer comes after the hand-over
		if response, err := clients[leader].Post("http://d/v1/elections/default/resign", "application/json", strings.NewReader("{}")); err == nil {
			response.Body.Close()
		}
	}()
	if line, err := lines.ReadString('\n'); err != nil || line != "undoes\n" {
		t.Fatal(line, err)
	}
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for range 60 { // much longer than a hand-over takes
		<-again.C
		var e api.Election
		if _, body := get(t, successor, "/v1/elections/default"); json.Unmarshal([]byte(body), &e) != nil || e.Leader != nil && e.Term > first.Term {
			t.Fatalf("another leads before the hook has run: %s", body)
		}
	}
	if _, err := end.WriteString("\n\n\n\n"); err != nil { // also for the runs at the end of the test
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); err != nil || line != "undone\n" {
		t.Fatal(line, err)
	}
	follow(t, successor, func(c api.Change) bool { return c.Leader != nil && c.Term > first.Term })
}

// waitForFile waits until the file exists.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); ; <-again.C {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %s", path)
		}
	}
}

// actBeside runs doyen act beside the agent until end is called. It uses the configuration that the agent has read last.
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
