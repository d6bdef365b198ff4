//go:build linux

package examples_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/loopbacks"
)

func none(string) string { return "" }

// One namespace stands for the network segment, with one interface for each host.
func TestTheVirtualAddressIsOnTheLeaderAndNowhereElse(t *testing.T) {
	t.Parallel()
	need(t, "ip", "sh")
	if os.Geteuid() != 0 {
		t.Skip("moving addresses needs root")
	}
	space := fmt.Sprintf("doyen-example-%d", os.Getpid())
	if code, out := run(t, nil, "ip", "netns", "add", space); code != 0 {
		t.Skipf("no network namespace can be made: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", space).CombinedOutput(); err != nil {
			t.Errorf("remove namespace: %v %s", err, out)
		}
	})
	ip := func(args ...string) string {
		t.Helper()
		code, out := run(t, nil, "ip", append([]string{"-n", space}, args...)...)
		if code != 0 {
			t.Fatalf("ip %v: %s", args, out)
		}
		return out
	}
	ip("link", "set", "lo", "up")
	for _, name := range []string{"a", "b", "c"} {
		ip("link", "add", "v"+name, "type", "veth", "peer", "name", "p"+name)
		ip("link", "set", "v"+name, "up")
		ip("link", "set", "p"+name, "up")
	}
	hook := copyOf(t, "virtual-ip/virtual-ip")
	tr := start(t, func(name string) string {
		// A hook that takes longer than the lease is late. A busy machine may cause that.
		return fmt.Sprintf("on-change: /usr/bin/env VIP=10.77.0.100/24 DEV=v%s %s\n", name, hook)
	}, "ip", "netns", "exec", space)
	onlyOn := func(m *member) func() bool {
		return func() bool {
			have := ip("-br", "addr", "show", "to", "10.77.0.100") // of all hosts at one moment
			if strings.Count(have, "10.77.0.100/24") > 1 && !tr.logged("hook is late") {
				t.Fatalf("two have the address:\n%s", have)
			}
			return strings.HasPrefix(have, "v"+m.name+"@")
		}
	}
	first := tr.leader(nil)
	tr.await("the address on the leader", onlyOn(first))
	// A host without arping.
	bare := filepath.Join(t.TempDir(), "bare")
	for _, program := range []string{"sh", "ip"} {
		if at, err := exec.LookPath(program); err != nil || os.MkdirAll(bare, 0o755) != nil || os.Symlink(at, filepath.Join(bare, program)) != nil {
			t.Fatal(err)
		}
	}
	_, said := run(t, nil, "ip", "netns", "exec", space, "env", "DOYEN_EVENT=leading", "VIP=10.77.1.100/24", "DEV=v"+first.name, "PATH="+bare, hook)
	if want := "can't announce 10.77.1.100 on v" + first.name + ": install arping, or set GATEWAY\n"; said != want {
		t.Errorf("a host that can't announce it says %q, want %q", said, want)
	}
	second := tr.handOver(first, "default")
	tr.await("the address on the successor", onlyOn(second))
	second.kill(t) // without an event, as in ExecStopPost=, the script cleans up
	if code, out := run(t, nil, "ip", "netns", "exec", space, "env", "VIP=10.77.0.100/24", "DEV=v"+second.name, hook); code != 0 {
		t.Fatalf("clean up: %s", out)
	}
	tr.await("the address on the third", onlyOn(tr.leader(second)))
}

func TestHAProxyFollowsTheLeader(t *testing.T) {
	need(t, "haproxy")
	for _, name := range []string{"haproxy.cfg", "haproxy-agent.cfg"} {
		t.Run(name, func(t *testing.T) { t.Parallel(); followsTheLeader(t, "haproxy/"+name) })
	}
}

func followsTheLeader(t *testing.T, example string) {
	ports := loopbacks.FreePorts(t, 7)
	var pairs []string
	for i, name := range []string{"a", "b", "c"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}
		go server.Serve(l)
		t.Cleanup(func() { server.Close() })
		// All hosts of the test have the same address, so their check ports differ.
		checks := fmt.Sprintf(" port %d", ports[i])
		if example == "haproxy/haproxy-agent.cfg" {
			checks += fmt.Sprintf(" agent-port %d", ports[4+i])
		}
		pairs = append(pairs, fmt.Sprintf("10.0.0.%d:8080", i+1), l.Addr().String()+checks)
	}
	front := fmt.Sprintf("127.0.0.1:%d", ports[3])
	pairs = append(pairs, "127.0.0.1:8000", front, "retries 50", "retries 250") // a busy machine elects slowly
	config := copyOf(t, example, pairs...)
	if code, out := run(t, nil, "haproxy", "-c", "-f", example); code != 0 {
		t.Fatalf("as it stands: %s", out)
	}
	tr := start(t, func(name string) string {
		i := strings.Index("abc", name)
		return fmt.Sprintf("http: 127.0.0.1:%d\nagent-check: 127.0.0.1:%d\n", ports[i], ports[4+i])
	})
	proxy := exec.Command("haproxy", "-db", "-f", config)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Process.Kill(); _ = proxy.Wait() })
	first := tr.leader(nil)
	tr.await("a request to reach the leader", reaches(front, first))
	failed := load(t, "http://"+front)
	second := tr.handOver(first, "default")
	tr.await("a request to reach the successor", reaches(front, second))
	second.kill(t)
	tr.await("a request to reach the third", reaches(front, tr.leader(second)))
	if n, why := failed(); n == 0 || why != nil {
		t.Errorf("of %d requests over a transfer and a kill -9 some failed: %v", n, why)
	}
}

// reaches reports whether a request to the address is answered by the program on m's host.
func reaches(front string, m *member) func() bool {
	return func() bool { text, err := fetch("http://" + front); return err == nil && text == m.name }
}

// fetch sends a request on a new connection.
func fetch(url string) (string, error) {
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}).Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// load sends 100 requests a second, each on a new connection, until result is called. result returns how many
// requests it sent, and why the first ones failed.
func load(t *testing.T, url string) (result func() (int, error)) {
	var mu sync.Mutex
	var asked sync.WaitGroup
	var why []error
	n := 0
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			n++
			asked.Go(func() {
				if _, err := fetch(url); err != nil {
					mu.Lock()
					defer mu.Unlock()
					why = append(why, err)
				}
			})
		}
	}()
	end := sync.OnceFunc(func() { close(stop); <-stopped; asked.Wait() })
	t.Cleanup(end)
	return func() (int, error) {
		end()
		if len(why) == 0 {
			return n, nil
		}
		return n, fmt.Errorf("%d failed: %w", len(why), errors.Join(why[:min(3, len(why))]...))
	}
}

// A script in place of systemctl writes down its arguments.
func TestTheUnitFollowsTheLeader(t *testing.T) {
	t.Parallel()
	need(t, "sh")
	dir := t.TempDir()
	hook := copyOf(t, "systemd/follow-unit")
	fake := "#!/bin/sh\necho \"$@\" >> \"$OUT\"\n"
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	tr := start(t, func(name string) string {
		return fmt.Sprintf("elections:\n  default:\n    on-change: /usr/bin/env PATH=%s:/usr/bin:/bin OUT=%s/%s %s report.service\n", dir, dir, name, hook)
	})
	last := func(m *member) string {
		text, _ := os.ReadFile(filepath.Join(dir, m.name))
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return lines[len(lines)-1]
	}
	check := func(leader *member) {
		t.Helper()
		tr.await("the unit on the leader", func() bool {
			for _, m := range tr.agents {
				if want := map[bool]string{true: "start --no-block report.service", false: "stop report.service"}[m == leader]; last(m) != want {
					return false
				}
			}
			return true
		})
	}
	first := tr.leader(nil)
	check(first)
	check(tr.handOver(first, "default"))
}

// Here no agent runs under the unit: the tests of packaging do that, on a host with systemd.
func TestTheUnitIsHardened(t *testing.T) {
	t.Parallel()
	need(t, "systemd-analyze")
	delivered, err := os.ReadFile("../packaging/files/doyen.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "doyen.service")
	text := strings.ReplaceAll(string(delivered), "/usr/bin/doyen", doyen.path)
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, nil, "systemd-analyze", "verify", "--man=no", unit); code != 0 || strings.Contains(out, "doyen.service:") {
		t.Errorf("%d %s", code, out)
	}
	const threshold = "20" // of 100; systemd-analyze calls it "OK"
	if code, out := run(t, nil, "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold="+threshold, unit); code != 0 {
		t.Errorf("its exposure is above %s of 100:\n%s", threshold, out)
	}
	dropIn, err := os.ReadFile("virtual-ip/doyen.service.d/virtual-ip.conf")
	if err != nil || os.Mkdir(unit+".d", 0o700) != nil {
		t.Fatal(err)
	}
	extended := strings.ReplaceAll(string(dropIn), "/usr/local/libexec/doyen/virtual-ip", copyOf(t, "virtual-ip/virtual-ip"))
	if err := os.WriteFile(filepath.Join(unit+".d", "virtual-ip.conf"), []byte(extended), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, nil, "systemd-analyze", "verify", "--man=no", unit); code != 0 || strings.Contains(out, "virtual-ip.conf") {
		t.Errorf("with the drop-in of virtual-ip: %d %s", code, out)
	}
	for _, line := range []string{"StartLimitIntervalSec=0", "RestartSec=50ms", "RuntimeDirectoryPreserve=restart", "SystemCallErrorNumber=EPERM"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("it lacks %s", line)
		}
	}
	if strings.Contains(text, "PrivateUsers=yes") {
		t.Error("with PrivateUsers every other user is 65534 to the agent, and has no rights")
	}
}

func TestTheUnitsAreUnderstood(t *testing.T) {
	t.Parallel()
	need(t, "systemd-analyze")
	dir := t.TempDir()
	for _, example := range []string{"systemd/payments.service", "systemd/report.service", "cron/backup.service"} {
		unit := filepath.Base(example)
		text, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		// systemd-analyze demands that the programs exist.
		lines := strings.NewReplacer("/usr/bin/doyen", doyen.path, "/usr/local/bin/report", "/bin/true",
			"/usr/local/bin/backup", "/bin/true", "doyen.service", "").Replace(string(text))
		if err := os.WriteFile(filepath.Join(dir, unit), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := run(t, nil, "systemd-analyze", "verify", "--man=no", filepath.Join(dir, unit)); code != 0 || strings.Contains(out, unit+":") {
			t.Errorf("%s: %d %s", unit, code, out)
		}
	}
}
