package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// debian returns the root of a new Debian, which is made once: copy it.
func debian(t *testing.T) string {
	t.Helper()
	need(t, "mmdebstrap")
	root, err := newDebian()
	if err != nil {
		t.Skipf("no Debian can be had from here: %v", err)
	}
	return root
}

var newDebian = sync.OnceValues(func() (string, error) {
	root := filepath.Join(filepath.Dir(made.dir), "debian")
	out, err := exec.Command("timeout", "5m", "mmdebstrap", "--variant=minbase", "--include=systemd-sysv,iproute2,man-db,iputils-arping,polkitd,sqlite3", "bookworm", root).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return root, err
})

// site is three Debian hosts a, b and c on one network. Each is booted in separate namespaces, with systemd as
// PID 1.
type site struct {
	hosts []*host
}

type host struct {
	name, root string
	shared     string   // a folder that is /srv on all hosts
	groups     []string // the control groups of the site's processes
	boot       *exec.Cmd
	console    bytes.Buffer
}

func newSite(t *testing.T) *site {
	t.Helper()
	need(t, "systemd-nspawn", "systemctl", "ip", "nsenter", "dpkg-deb")
	base := debian(t)
	// The hosts' network and roots belong to this thread, which ends with the test.
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNET | syscall.CLONE_NEWNS); err != nil {
		t.Skipf("no network can be made here: %v", err)
	}
	disks := t.TempDir()
	run(t, "mount", "--make-rprivate", "/")
	run(t, "mount", "-t", "tmpfs", "-o", "mode=0755", "disks", disks)
	t.Cleanup(func() { _ = exec.Command("umount", "--recursive", "--lazy", disks).Run() })
	shared := filepath.Join(disks, "shared")
	run(t, "mkdir", shared)
	run(t, "ip", "link", "add", "site", "type", "bridge")
	run(t, "ip", "link", "set", "site", "up")
	s := &site{}
	for i, name := range []string{"a", "b", "c"} {
		h := &host{name: name, root: filepath.Join(disks, name, "root"), shared: shared, groups: groups(t, name)}
		s.hosts = append(s.hosts, h)
		on := filepath.Join(disks, name)
		run(t, "mkdir", "-p", h.root, on+"/written", on+"/work")
		run(t, "mount", "-t", "overlay", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s/written,workdir=%s/work", base, on, on), "overlay", h.root)
		run(t, "cp", file(t, ".deb"), h.root+"/root")
		h.write(t, "etc/hostname", name+"\n")
		h.write(t, "etc/systemd/network/10-host0.network", fmt.Sprintf("[Match]\nName=host0\n[Network]\nAddress=10.0.0.%d/24\nLinkLocalAddressing=no\n", i+1))
		run(t, "systemctl", "--root="+h.root, "enable", "systemd-networkd.service")
		t.Cleanup(func() { h.end(t) })
		h.start(t)
	}
	for _, h := range s.hosts {
		h.await(t, "systemctl is-system-running", "running|degraded")
	}
	return s
}

// groups makes control groups that only this host's systemd uses.
func groups(t *testing.T, name string) (made []string) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(own)) {
		below := "/sys/fs/cgroup"
		switch parts := strings.SplitN(strings.TrimSpace(line), ":", 3); parts[1] {
		case "": // version 2, or systemd's own hierarchy beside version 1
			if _, err := os.Stat(below + "/unified"); err == nil {
				below += "/unified"
			}
			below += parts[2]
		case "name=systemd":
			below += "/systemd" + parts[2]
		default:
			continue
		}
		at, err := os.MkdirTemp(below, "doyen-"+name)
		if err != nil {
			t.Skipf("no control group can be made here: %v", err)
		}
		made = append(made, at)
	}
	return made
}

func (h *host) write(t *testing.T, at, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.root, at), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (h *host) start(t *testing.T) {
	t.Helper()
	const enter = `for g in $GROUPS_OF_HOST; do echo $$ >$g/cgroup.procs; done; exec systemd-nspawn "$@"`
	h.boot = exec.Command("sh", "-c", enter, "sh", "--directory="+h.root, "--register=no", "--keep-unit", "--network-bridge=site", "--bind="+h.shared+":/srv", "--machine="+h.name, "--boot")
	h.boot.Env = append(os.Environ(), "GROUPS_OF_HOST="+strings.Join(h.groups, " "))
	h.boot.Stdout, h.boot.Stderr = &h.console, &h.console
	h.boot.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := h.boot.Start(); err != nil {
		t.Fatal(err)
	}
}

// init returns the number of the host's PID 1; 0: none.
func (h *host) init() int {
	pid := h.boot.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	first, _, _ := strings.Cut(string(children), " ")
	n, _ := strconv.Atoi(first)
	return n
}

func (h *host) off() bool { return h.boot.ProcessState != nil }

// unplug ends the host at once, with all its processes.
func (h *host) unplug() {
	if pid := h.init(); pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	} else {
		_ = h.boot.Process.Signal(syscall.SIGTERM)
	}
	_ = h.boot.Wait()
}

func (h *host) end(t *testing.T) {
	if t.Failed() && h.boot != nil && !h.off() {
		log, _ := h.sh("systemctl status --no-pager --lines=0 doyen; journalctl --no-pager -u doyen | tail -40; doyen status")
		t.Logf("%s: %s\n%s", h.name, log, h.console.String()[max(0, h.console.Len()-300):])
	}
	if h.boot != nil && !h.off() {
		h.unplug()
	}
	for _, g := range h.groups {
		_ = exec.Command("find", g, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+").Run()
	}
}

// sh runs commands on the host as root.
func (h *host) sh(commands string) (string, error) {
	cmd := exec.Command("nsenter", fmt.Sprintf("--target=%d", h.init()), "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd",
		"timeout", "60", "bash", "-eo", "pipefail", "-c", "cd /root\n"+commands)
	cmd.Env = []string{"HOME=/root", "USER=root", "TERM=dumb", "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// await repeats commands on the host until the output matches, for up to two minutes: a job may be due each
// minute.
func (h *host) await(t *testing.T, commands, want string) string {
	t.Helper()
	limit := time.After(2 * time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := h.sh(commands)
		if regexp.MustCompile(want).MatchString(out) {
			return out
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("on %s: %s\nits output does not fit %s, %v:\n%s", h.name, commands, want, err, out)
		}
	}
}

// must runs commands on the host once, and demands the output.
func (h *host) must(t *testing.T, commands, want string) string {
	t.Helper()
	out, err := h.sh(commands)
	if err != nil || !regexp.MustCompile(want).MatchString(out) {
		t.Fatalf("on %s: %s\n%v, and the output should fit %s:\n%s", h.name, commands, err, want, out)
	}
	return out
}

// agents installs a package on all hosts, runs the commands on each, and starts agents with these lines in
// their configuration.
func (s *site) agents(t *testing.T, deb, lines, commands string) {
	t.Helper()
	for _, h := range s.hosts {
		run(t, "cp", deb, h.root+"/root/first.deb")
		h.must(t, "dpkg -i first.deb", "Setting up doyen")
	}
	s.hosts[0].must(t, "doyen keygen --out /etc/doyen/keys/cluster", "")
	copyTheKey(t, s)
	configure(t, s)
	for _, h := range s.hosts {
		h.must(t, "chown doyen: /etc/doyen/keys/cluster; chmod 0600 /etc/doyen/keys/cluster\ncat >>/etc/doyen/agent.yaml <<'END'\n"+lines+"END\n"+commands, "")
	}
	for _, h := range s.hosts {
		h.must(t, "systemctl daemon-reload; systemctl enable --now --no-block doyen", "")
	}
	for _, h := range s.hosts {
		h.await(t, "doyen status", `exists: 3 of 3 voters`)
	}
}

// up are the hosts that run.
func (s *site) up() []*host {
	return slices.DeleteFunc(slices.Clone(s.hosts), (*host).off)
}

// leader waits until an agent knows a leader, and returns that host and its term.
func (s *site) leader(t *testing.T) (*host, int) {
	t.Helper()
	return s.leaderOf(t, "default")
}

func (s *site) leaderOf(t *testing.T, election string) (*host, int) {
	t.Helper()
	var answer struct {
		Leader struct{ Name string }
		Term   int
	}
	if err := json.Unmarshal([]byte(s.up()[0].await(t, "doyen leader -o json "+election, `"leader":\{`)), &answer); err != nil {
		t.Fatal(err)
	}
	return s.hosts[slices.IndexFunc(s.hosts, func(h *host) bool { return h.name == answer.Leader.Name })], answer.Term
}

// on returns the hosts that a block of a page names.
func (s *site) on(t *testing.T, which string) []*host {
	t.Helper()
	switch which {
	case "one host":
		return s.up()[:1]
	case "every host":
		return s.up()
	}
	leads, _ := s.leader(t)
	switch which {
	case "the leader's host":
		return []*host{leads}
	case "another host":
		return slices.DeleteFunc(s.up(), func(h *host) bool { return h == leads })[:1]
	}
	t.Fatalf("which host is %q?", which)
	return nil
}
