package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// read returns what a file contains; empty: it does not exist.
func (m *mesh) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.dir, name))
	return string(text)
}

func (m *mesh) events() string { return m.read("hook.events") }

func (m *mesh) leads(ctx context.Context, name string) bool {
	e, err := m.client(name).Election(ctx, "default", client.ElectionOptions{})
	return err == nil && e.IsLeader
}

// pages are a's lease pages.
func (m *mesh) pages() []string {
	all, _ := filepath.Glob(filepath.Join(leasepage.Dir(m.socket("a")), "*")) // the pattern is valid
	return all
}

func TestAHookThatFailsIsAWarningAndAMetricAndHandsOver(t *testing.T) {
	t.Parallel()
	m := keptWith(t, "a", "#!/bin/sh\necho $DOYEN_EVENT >> $0.events\n[ $DOYEN_EVENT != leading ]\n", "on-change: %s\nhook-failures: 2\n", "a")
	m.until(t, "the warning", func(ctx context.Context) bool {
		a, err := m.client("a").Agent(ctx)
		return err == nil && slices.ContainsFunc(a.Warnings, func(w api.Warning) bool { return w.Code == "hook_failed" })
	})
	m.until(t, "another leads", func(ctx context.Context) bool { return m.leads(ctx, "b") || m.leads(ctx, "c") })
	if got := m.events(); !strings.HasSuffix(got, "leading\nleading\nnone\nfollowing\n") && !strings.HasSuffix(got, "leading\nleading\nnone\n") {
		t.Errorf("the hook ran with:\n%s", got)
	}
	response, err := http.Get("http://" + m.addr("a") + ":7980/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), `doyen_hook_failures_total{cluster="doyen"} 1`) {
		t.Errorf("%v, metrics:\n%s", err, text)
	}
	var out, problems bytes.Buffer
	if code := run(t.Context(), []string{"doyen", "history", "--socket", m.socket("a")}, nil, &out, &problems); code != exitOK || !strings.Contains(out.String(), "hook failed") {
		t.Errorf("%d: %s%s", code, &out, &problems)
	}
}

// K6: no next life can start, because the configuration is wrong. The record is destroyed first, then the hook
// runs with none, and the keeper ends last: even if the record is damaged or missing.
func TestALineageThatEndsLeavesNothing(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(record string) error{
		"as it is":           func(string) error { return nil },
		"the record is gone": os.Remove,
		"it is damaged":      func(path string) error { return os.Truncate(path, 10) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMesh(t)
			m.lease = "1m" // a busy machine must end the lineage before the lease ends
			m.keep(t, "a", "#!/bin/sh\necho $DOYEN_EVENT >> $0.events\n[ $DOYEN_EVENT != leading ] || exec sleep 1000\n"+
				"[ $DOYEN_EVENT != none ] || { [ ! -e $0.record ] || echo a record is left; sleep 0.2; echo undone; } >> $0.events\n", "on-change: %s\n", "a")
			if err := os.Symlink(m.record, filepath.Join(m.dir, "hook.record")); err != nil {
				t.Fatal(err)
			}
			m.until(t, "the hook acts", func(context.Context) bool { return strings.HasSuffix(m.events(), "leading\n") && len(m.pages()) > 0 })
			life := m.agent(t, "a").PID
			if _, err := os.Stat(m.record); err != nil {
				t.Skipf("needs a tmpfs at /dev/shm, which CI has: %v", err)
			}
			if err := spoil(m.record); err != nil {
				t.Fatal(err)
			}
			m.write(t, "a.yaml", "lease: none\n")
			if err := syscall.Kill(life, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = m.agents["a"].Wait()
			if code := m.agents["a"].ProcessState.ExitCode(); code != exitConfig {
				t.Errorf("the keeper ended with %d", code)
			}
			if got := m.events(); !strings.HasSuffix(got, "leading\nnone\nundone\n") {
				t.Errorf("when the keeper has ended, the hook has run:\n%s", got)
			}
			if _, err := os.Stat(m.record); err == nil || len(m.pages()) > 0 {
				t.Errorf("record: %v, pages %v", err, m.pages())
			}
		})
	}
}

// While a keeper waits between short lives, an agent is started by hand and leads. The keeper then finds the
// data directory in use, and leaves the agent's lease pages alone. Its doyen act ends, and the other keeper's
// starts. The first keeper is stopped while it waits, so that the other agent comes first.
func TestAKeeperThatGivesUpLeavesAnAgentAloneThatWasStartedByHand(t *testing.T) {
	t.Parallel()
	m := kept(t, "a")
	if err := os.RemoveAll(filepath.Dir(m.record)); err != nil { // no record is kept from now on
		t.Fatal(err)
	}
	log := filepath.Join(m.dir, "a.log")
	announced := regexp.MustCompile(`the agent has ended, starting it again.* in=(\S+)`)
	for ended, wait := 0, time.Duration(0); wait < time.Second; ended++ { // a life that takes long to answer is not short: the waits begin again
		life := m.agent(t, "a").PID
		if err := syscall.Kill(life, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		m.until(t, "the keeper has noticed", func(context.Context) bool {
			text, _ := os.ReadFile(log)
			lines := announced.FindAllStringSubmatch(string(text), -1)
			if len(lines) > ended {
				wait, _ = time.ParseDuration(lines[ended][1])
			}
			return len(lines) > ended
		})
	}
	keeper := m.agents["a"]
	if err := keeper.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	m.more = append(m.more, "--config", filepath.Join(m.dir, "a.yaml"))
	m.start(t, "a") // by hand
	m.agent(t, "a") // the agent answers
	if err := keeper.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = keeper.Wait()
	if code := keeper.ProcessState.ExitCode(); code != exitConfig {
		t.Errorf("the keeper ended with %d", code)
	}
	if len(m.pages()) == 0 {
		t.Error("the keeper has ended the lease pages")
	}
	m.until(t, "the agent that was started by hand leads, and its hook acts", func(ctx context.Context) bool {
		if !m.leads(ctx, "a") {
			for _, other := range []string{"b", "c"} {
				_, _ = m.client(other).Transfer(ctx, "default", "a") // if it leads
			}
		}
		return m.leads(ctx, "a") && strings.HasSuffix(m.events(), "leading\n")
	})
	var out bytes.Buffer
	if code := run(t.Context(), []string{"doyen", "is-leader", "--socket", m.socket("a")}, nil, &out, &out); code != exitOK || len(m.pages()) == 0 {
		t.Errorf("is-leader: %d, %s; pages %v", code, &out, m.pages())
	}
}
