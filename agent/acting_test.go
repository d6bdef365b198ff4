package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/testbed/executable"
)

// TestACheckDecidesWhoMayLead: a host leads only while its check succeeds, and the last line of a
// check that fails is the reason that everybody sees.
func TestACheckDecidesWhoMayLead(t *testing.T) {
	dir := t.TempDir()
	well, log := filepath.Join(dir, "well"), filepath.Join(dir, "log")
	quick := health.Check{Command: executable.Script(t, "echo looking; test -e "+well+" || { echo no database; exit 1; }"), Every: health.Shortest, Timeout: patience, Fall: 2, Rise: 1}
	set := func(ok bool) {
		if !ok {
			os.Remove(well)
		} else if err := os.WriteFile(well, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newReloading(t, func(c *settings.Config) {
		c.HostCheck = quick
		c.OnChange = executable.Script(t, `grep -o '"type":"[a-z_]*"\|"reason":"[^"]*"' | tr '\n' ' ' >> `+log)
	})
	warned := func(w api.Warning) bool {
		return w.Code == "check_failed" && strings.Contains(w.Message, "no database")
	}
	untilAnswer(r, "/v1/agent", func(a api.Agent) bool { return slices.ContainsFunc(a.Warnings, warned) })
	if e := answerOf[api.Election](r, "/v1/elections/default"); e.IsLeader || len(e.Candidates) > 0 {
		t.Errorf("a host leads whose check has never succeeded: %+v", e)
	}
	set(true)
	term := untilAnswer(r, "/v1/elections/default", isLed).Term
	set(false)
	untilAnswer(r, "/v1/elections/default", func(e api.Election) bool { return !e.IsLeader && len(e.Candidates) == 0 })
	untilAnswer(r, "/v1/members", func(m api.Members) bool { // gossip shows this agent to itself a moment later
		return !m.Members[0].Candidate && m.Members[0].Reason == "check failed: no database"
	})
	untilAnswer(r, "/v1/history?election=default", func(h api.History) bool {
		last := h.History[len(h.History)-1]
		return last.Reason == "check failed: no database" && last.Term == term
	})
	untilAnswer(r, "/v1/agent", func(api.Agent) bool {
		text, _ := os.ReadFile(log)
		return strings.HasSuffix(string(text), `"type":"no_leader" "reason":"check failed: no database" `)
	})
	r.c.HostCheck = health.Check{} // without a check the host is a candidate again
	r.want("check", "")
	term = untilAnswer(r, "/v1/elections/default", isLed).Term
	// A check that a reload adds ends no leadership before it has failed Fall times.
	slow := quick
	slow.Fall, slow.Every = 1000, time.Second
	r.c.Elections = map[string]settings.ElectionConfig{"default": {Check: slow}}
	r.want("elections", "")
	if e := answerOf[api.Election](r, "/v1/elections/default"); !e.IsLeader || e.Term != term {
		t.Errorf("the lead was lost: %+v", e)
	}
	r.c.Elections = map[string]settings.ElectionConfig{"default": {Check: quick}}
	r.want("elections", "")
	untilAnswer(r, "/v1/elections/default", func(e api.Election) bool { return !e.IsLeader })
}

// With keep-last, a host whose check fails goes on leading if no other host can lead. A warning shows that.
func TestACheckThatKeepsTheLastLeavesALeader(t *testing.T) {
	r := newReloading(t, func(c *settings.Config) {
		c.HostCheck = health.Check{Command: executable.Script(t, "echo no database; exit 1"), Every: health.Shortest, Timeout: patience, Fall: 2, KeepLast: true}
	})
	untilAnswer(r, "/v1/elections/default", isLed)
	untilAnswer(r, "/v1/agent", func(a api.Agent) bool {
		return slices.ContainsFunc(a.Warnings, func(w api.Warning) bool {
			return w.Code == "check_failed" && strings.Contains(w.Message, "leads only where no other host can (keep-last) in any election: check failed: no database")
		})
	})
	r.c.HostCheck.KeepLast = false
	r.want("check", "")
	untilAnswer(r, "/v1/elections/default", func(e api.Election) bool { return !e.IsLeader && len(e.Candidates) == 0 })
	r.c.HostCheck.KeepLast = true
	r.want("check", "")
	untilAnswer(r, "/v1/elections/default", isLed)
}

// A check that hangs delays neither the lead of others nor the end of the agent.
func TestAHungCheckDelaysNothing(t *testing.T) {
	r := newReloading(t, func(c *settings.Config) {
		c.Elections = map[string]settings.ElectionConfig{"payments": {Check: health.Check{Command: "/bin/sleep 1000", Every: health.Shortest, Timeout: health.Longest}}}
	})
	term := untilAnswer(r, "/v1/elections/default", isLed).Term
	r.c.Elections = nil
	r.want("elections", "")
	if e := answerOf[api.Election](r, "/v1/elections/default"); !e.IsLeader || e.Term != term {
		t.Errorf("%+v", e)
	}
}

// A program that gives up the lead may give a reason, and this host shows the reason.
func TestWhyAProgramGivesUpTheLeadIsShown(t *testing.T) {
	r := newReloading(t, func(c *settings.Config) { c.Candidate = false })
	k, err := client.New(r.c.Socket).Stand(t.Context(), "payments", api.CampaignRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if e, err := k.Next(t.Context()); err != nil || e.Type != api.CampaignElected {
		t.Fatalf("%+v, %v", e, err)
	}
	if err := k.StoppedBecause(t.Context(), "check failed:\nno database"); err != nil {
		t.Fatal(err)
	}
	untilAnswer(r, "/v1/history?election=payments", func(h api.History) bool {
		return len(h.History) > 1 && h.History[len(h.History)-1].Reason == "check failed: no database"
	})
}
