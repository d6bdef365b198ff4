package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// keeperless is the commit of 0.3.0, whose keeper can't start doyen act.
const keeperless = "0b1019fdbaabe7aa8941d4028864437e2643195a"

// before returns the commit of the previous release.
func before(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../testbed/hosts/release.go")
	if err != nil {
		t.Fatal(err)
	}
	return string(regexp.MustCompile(`formerCommit = "(.*)"`).FindSubmatch(text)[1])
}

// former returns the package of a commit.
func former(t *testing.T, commit string) string {
	t.Helper()
	source := t.TempDir()
	run(t, "git", "clone", "--quiet", "--shared", "--no-checkout", "..", source)
	if out, err := exec.Command("git", "-C", source, "checkout", "--quiet", commit).CombinedOutput(); err != nil {
		t.Skipf("the history here does not have commit %s: %v\n%s", commit, err, out)
	}
	pack := exec.CommandContext(t.Context(), "go", "run", ".", "-out", source+"/dist", "-only", "linux/"+runtime.GOARCH)
	pack.Dir = source + "/packaging"
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found, err := filepath.Glob(source + "/dist/*.deb")
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

// hooked returns three hosts with that package, hooks, checks and a program.
func hooked(t *testing.T, pack string) *site {
	t.Helper()
	s := newSite(t)
	s.agents(t, pack, `on-change: /usr/local/libexec/doyen/hook
check: {command: "ls /etc/healthy", every: 500ms}
elections:
  payments: {on-change: /usr/local/libexec/doyen/hook, check: {command: "ls /etc/healthy", every: 500ms}}
`, `touch /etc/healthy
install -D /dev/stdin /usr/local/libexec/doyen/hook <<'END'
#!/bin/sh
echo "$DOYEN_ELECTION $DOYEN_EVENT $DOYEN_TERM" >>/var/lib/doyen/runs
END
`)
	for _, h := range s.hosts {
		h.must(t, "systemd-run --quiet --unit=payments doyen run payments -- sleep infinity", "")
	}
	return s
}

const ledIn = `(?m)^default .* [abc],[abc],[abc]\n(?s:.*)^payments .* [abc],[abc],[abc]$`

// The leader leads on in the same term, and no hook runs again.
func TestAnUpgradeFromTheReleaseBefore(t *testing.T) {
	s := hooked(t, former(t, before(t)))
	for _, h := range s.hosts {
		h.await(t, "doyen status", ledIn)
	}
	names := []string{"default", "payments"}
	led := map[string]string{}
	lead := func(name string) string {
		h, term := s.leaderOf(t, name)
		h.await(t, "cat /var/lib/doyen/runs", fmt.Sprintf(`(?m)^%s leading %d$`, name, term))
		return fmt.Sprintf("%s in term %d", h.name, term)
	}
	for _, name := range names {
		led[name] = lead(name)
	}
	for _, h := range s.hosts {
		out := h.must(t, "dpkg -i ./doyen_*.deb", "")
		h.await(t, "doyen status", "version "+made.version)
		t.Logf("on %s:\n%s%s", h.name, out, h.await(t, "doyen status", ledIn))
	}
	for _, name := range names {
		if now := lead(name); now != led[name] {
			t.Errorf("%s was led by %s, and now by %s", name, led[name], now)
		}
	}
	for _, h := range s.hosts {
		for line, n := range times(h.must(t, "cat /var/lib/doyen/runs", "")) {
			if strings.Contains(line, " leading ") && n > 1 {
				t.Errorf("on %s the hook ran %d times with %s", h.name, n, line)
			}
		}
	}
}

func times(text string) map[string]int {
	counted := map[string]int{}
	for line := range strings.Lines(text) {
		counted[line]++
	}
	return counted
}

// Three hosts of 0.3.0 install this package, one after the other. Their keepers can't start doyen act. No
// election is without a leader for longer than a lease, and in each term the hook runs with leading on only one
// host.
func TestAnUpgradeFromAKeeperThatRunsNoHooks(t *testing.T) {
	s := hooked(t, former(t, keeperless))
	const low = "http: 127.0.0.1:80" // only the previous release lets an agent use this port
	last := s.hosts[2]
	last.must(t, "echo '"+low+`' >>/etc/doyen/agent.yaml
install -D /dev/stdin /etc/systemd/system/doyen.service.d/low.conf <<'END'
[Service]
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
END
systemctl daemon-reload; systemctl restart doyen`, "")
	for _, h := range s.hosts {
		h.await(t, "doyen status", ledIn)
	}
	begun := time.Now()
	for _, h := range s.hosts {
		want := "the service restarts: its keeper"
		if h == last {
			want = "(?s)port 80 is below 1024.*no hooks and checks until you mend"
		}
		out := h.must(t, "dpkg -i ./doyen_*.deb", want)
		if h == last {
			h.must(t, "doyen status; ! doyen restart", "(?s)act_missing.*run systemctl restart doyen, once")
			h.must(t, "sed -i '/^http/d' /etc/doyen/agent.yaml; systemctl restart doyen", "")
		}
		h.await(t, "doyen status", "version "+made.version)
		t.Logf("after %.1f s, on %s:\n%s%s", time.Since(begun).Seconds(), h.name, out, h.await(t, "doyen status", ledIn))
		h.must(t, "! doyen status | grep act_missing", "")
	}
	led := map[string]string{}
	for _, h := range s.hosts {
		worst := vacant(t, h, begun)
		t.Logf("on %s no leader was known for %s", h.name, worst)
		if worst > 1200*time.Millisecond {
			t.Errorf("on %s no leader was known for %s: %s", h.name, worst, h.must(t, "doyen history", ""))
		}
		runs := h.must(t, "cat /var/lib/doyen/runs", "")
		for line := range strings.Lines(runs) {
			if by := led[line]; strings.Contains(line, " leading ") && by != "" && by != h.name {
				t.Errorf("the hook ran on %s and on %s with %s", by, h.name, line)
			}
			led[line] = h.name
		}
	}
	for _, name := range []string{"default", "payments"} {
		h, term := s.leaderOf(t, name)
		h.must(t, "cat /var/lib/doyen/runs", fmt.Sprintf(`(?m)^%s leading %d$`, name, term))
	}
}

// vacant returns the longest time since then for which the host knew no leader of an election.
func vacant(t *testing.T, h *host, since time.Time) time.Duration {
	t.Helper()
	var answer struct {
		History []struct {
			Time     time.Time
			VacantMS int64 `json:"vacant_ms"`
		}
	}
	if err := json.Unmarshal([]byte(h.must(t, "doyen history -o json", "")), &answer); err != nil {
		t.Fatal(err)
	}
	worst, seen := int64(0), 0
	for _, change := range answer.History {
		if change.Time.After(since) {
			worst, seen = max(worst, change.VacantMS), seen+1
		}
	}
	if seen == 0 {
		t.Errorf("%s has no history of the upgrade", h.name)
	}
	return time.Duration(worst) * time.Millisecond
}
