package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// The command's stamps show that it neither stopped nor started again.
func TestACommandRunsOnWhenItsAgentIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); testing.Short() || err != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Skip("it runs real agents for some seconds, with a tmpfs at /dev/shm: not with -short, nor without one; CI runs it")
	}
	records, err := os.MkdirTemp("/dev/shm", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(records)
	m := newMesh(t)
	// A busy machine may take a second to start an agent.
	m.more = []string{"--keeper=false", "--record-dir", records, "--heartbeat", "300ms", "--lease", "6s"}
	m.form(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stamps := filepath.Join(m.dir, "stamps")
	said, err := os.Create(filepath.Join(m.dir, "run.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	c := &exec.Cmd{Path: self, Stderr: said, Env: append(os.Environ(), "DOYEN_SOCKET="+m.socket("a"), "STAMPS="+stamps), SysProcAttr: m.member(),
		Args: []string{"doyen", "run", "pay", "--", "sh", "-c", `while :; do echo $DOYEN_TERM $$ >> $STAMPS; sleep 0.05; done`}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Wait() }()
	defer c.Process.Kill()
	lines := func() []string {
		text, _ := os.ReadFile(stamps) // empty until the file exists
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	m.until(t, "the command runs", func(context.Context) bool { return len(lines()) > 3 })
	for round := range 3 {
		before := len(lines())
		if err := m.agents["a"].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = m.agents["a"].Wait()
		m.until(t, "the command runs on without its agent", func(context.Context) bool { return len(lines()) > before+3 })
		m.start(t, "a")
		m.until(t, "the command has resumed", func(context.Context) bool {
			text, _ := os.ReadFile(said.Name())
			return strings.Count(string(text), "still leading pay") > round
		})
		resumed := alarm.Now()
		m.until(t, "the lease is renewed, so that the next round has all of it", func(ctx context.Context) bool {
			e, err := m.client("a").Election(ctx, "pay", client.ElectionOptions{})
			return err == nil && e.ValidUntilBoottimeNS > resumed+int64(5*time.Second)
		})
	}
	all := lines()
	for _, l := range all {
		if l != all[0] {
			t.Fatalf("stamps %q and %q: the command was started again", all[0], l)
		}
	}
	e, err := m.client("b").Election(t.Context(), "pay", client.ElectionOptions{})
	if err != nil || e.Leader == nil || e.Leader.Name != "a" || !strings.HasPrefix(all[0], fmt.Sprint(e.Term, " ")) {
		t.Errorf("b names %+v, %v; the command stamps %q", e, err, all[0])
	}
}
