package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// The tools of docs/containers.md read the image: podman for this machine, skopeo for all platforms.
func TestTheImageIsLoaded(t *testing.T) {
	need(t, "skopeo")
	p := newPodman(t)
	r, err := newRelease(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(r.work)
	own := platform{release: r, system: "linux", arch: runtime.GOARCH}
	if err := r.image([]platform{own, own}); err != nil { // two platforms, as a release has
		t.Fatal(err)
	}
	image := filepath.Join(r.out, filepath.Base(file(t, "-image.tar")))
	if out := p.run(t, "load", "-i", image); !strings.Contains(out, "doyen:"+made.version) {
		t.Errorf("podman load: %s", out)
	}
	if out := p.run(t, append(append([]string{"run", "--rm", "--network=none"}, limits...), "doyen:"+made.version, "version")...); !strings.HasPrefix(out, "doyen "+made.version+" ") {
		t.Errorf("podman run: %s", out)
	}
	to := t.TempDir()
	run(t, "skopeo", "copy", "--all", "oci-archive:"+image, "dir:"+to)
	if list := run(t, "cat", to+"/manifest.json"); strings.Count(list, `"architecture":"`) != 2 {
		t.Errorf("skopeo did not copy both: %s", list)
	}
}

// limits work even if this process may not raise any limit.
var limits = []string{"--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"}

// podman is podman with a separate storage.
type podman struct {
	flags []string
	net   map[string]string // each agent's network
	hosts []string          // flags that tell the containers the names of the hosts
}

func newPodman(t *testing.T) *podman {
	t.Helper()
	need(t, "podman", "runc", "ip")
	dir, err := os.MkdirTemp("", "pod") // podman refuses long paths
	if err != nil {
		t.Fatal(err)
	}
	p := &podman{flags: []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", "runc"}}
	t.Cleanup(func() {
		_, _ = p.try("rm", "--all", "--force", "--time", "0")
		_, _ = p.try("volume", "rm", "--all", "--force")
		_ = os.RemoveAll(dir)
	})
	return p
}

func (p *podman) try(args ...string) (string, error) {
	cmd := exec.Command("podman", append(slices.Clone(p.flags), args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p *podman) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.try(args...)
	if err != nil {
		t.Fatalf("podman %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// networks makes a network for each agent, with a bridge between them. Debian's podman can make one only with
// rules for the whole host. The names are for --add-host.
func (p *podman) networks(t *testing.T, names ...string) {
	t.Helper()
	space := func(name string) string { return fmt.Sprintf("doyen-%d-%s", os.Getpid(), name) }
	for _, name := range append([]string{"bridge"}, names...) {
		run(t, "ip", "netns", "add", space(name))
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", space(name)).Run() })
	}
	run(t, "ip", "-n", space("bridge"), "link", "add", "name", "site", "up", "type", "bridge")
	p.net = map[string]string{}
	for i, name := range names {
		address := fmt.Sprintf("10.89.0.%d", i+1)
		run(t, "ip", "-n", space(name), "link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", space("bridge"))
		run(t, "ip", "-n", space("bridge"), "link", "set", "dev", name, "master", "site", "up")
		run(t, "ip", "-n", space(name), "addr", "add", address+"/24", "dev", "eth0")
		run(t, "ip", "-n", space(name), "link", "set", "eth0", "up")
		run(t, "ip", "-n", space(name), "link", "set", "lo", "up")
		p.net[name] = "ns:/run/netns/" + space(name)
		p.hosts = append(p.hosts, "--add-host", name+":"+address)
	}
}

// await repeats a command until its output matches.
func (p *podman) await(t *testing.T, want string, args ...string) string {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := p.try(args...)
		if err == nil && regexp.MustCompile(want).MatchString(out) {
			return out
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("podman %s: %v, and its output does not fit %s:\n%s", strings.Join(args, " "), err, want, out)
		}
	}
}

// images loads doyen's image, and builds a program's image by the lines of docs/containers.md.
func (p *podman) images(t *testing.T, names ...string) {
	t.Helper()
	p.run(t, "load", "-i", file(t, "-image.tar"))
	work := t.TempDir()
	run(t, "tar", "-C", debian(t), "--exclude=./usr/share/*", "--exclude=./var/*", "--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./dev/*", "-cf", work+"/debian.tar", ".")
	p.run(t, "import", "--quiet", work+"/debian.tar", "docker.io/library/debian:stable-slim")
	page, err := os.ReadFile("../docs/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```dockerfile\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no Dockerfile")
	}
	if err := os.WriteFile(work+"/Dockerfile", found[1], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p.run(t, "build", "--quiet", "--pull=never", "--isolation=chroot", "--tag", name, "--file", work+"/Dockerfile", work)
	}
}

// start starts a service of the Compose file, with a flag for each setting.
func (p *podman) start(t *testing.T, of *types.Project, name string, s types.ServiceConfig, key string) {
	t.Helper()
	args := append([]string{"run", "--detach", "--name", name, "--network", cmp.Or(p.net[name], "none")}, append(limits, p.hosts...)...)
	if beside, ok := strings.CutPrefix(s.Pid, "service:"); ok {
		args = append(args, "--pid", "container:"+beside)
	}
	for flag, value := range map[string]string{"--hostname": s.Hostname, "--user": s.User} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	if s.ReadOnly {
		args = append(args, "--read-only")
	}
	for flag, values := range map[string][]string{"--group-add": s.GroupAdd, "--cap-drop": s.CapDrop, "--security-opt": s.SecurityOpt} {
		for _, v := range values {
			args = append(args, flag, strings.TrimSuffix(v, ":true")) // podman's spelling of Docker's no-new-privileges:true
		}
	}
	for variable, value := range s.Environment {
		args = append(args, "--env", variable+"="+*value)
	}
	for _, v := range s.Volumes {
		args = append(args, "--volume", v.Source+":"+v.Target)
	}
	for _, secret := range s.Secrets {
		args = append(args, "--volume", key+":/run/secrets/"+secret.Source+":ro")
	}
	if s.Entrypoint != nil {
		entrypoint, err := json.Marshal(s.Entrypoint)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--entrypoint", string(entrypoint))
	}
	p.run(t, append(args, s.Image)...)
}

// podman starts the three agents and three programs of examples/containers/compose.yaml, and one more program.
// That one must be able to campaign, and to do nothing else.
func TestAProgramInAContainerIsACandidateAndNoMore(t *testing.T) {
	p := newPodman(t)
	project := composed(t)
	p.images(t, project.Services["program-a"].Image)
	p.networks(t, "a", "b", "c")
	for name, v := range project.Volumes {
		args := []string{"volume", "create"}
		for option, value := range v.DriverOpts {
			args = append(args, "--opt", option+"="+strings.TrimPrefix(value, "size=16m,")) // podman 4 takes this option for a quota
		}
		p.run(t, append(args, name)...)
	}
	key := filepath.Join(t.TempDir(), "cluster.key")
	run(t, program(t), "keygen", "--out", key)
	run(t, "chown", "65532:65532", key)
	fourth := project.Services["program-a"]
	fourth.Entrypoint = types.ShellCommand{"doyen", "run", "reports", "--shell", "--", "while sleep 1; do date; done"}
	project.Services["fourth"] = fourth
	for _, name := range []string{"a", "b", "c", "program-a", "program-b", "program-c", "fourth"} {
		p.start(t, project, name, project.Services[name], key)
	}
	p.await(t, "exists: 3 of 3 voters", "exec", "a", "doyen", "status")
	p.await(t, "^[abc]\n", "exec", "a", "doyen", "leader", "payments")
	p.await(t, "^a\n", "exec", "b", "doyen", "leader", "reports")
	if status := p.run(t, "exec", "a", "doyen", "status"); strings.Contains(status, "no_record") {
		t.Errorf("no record is kept:\n%s", status)
	}

	var agent struct{ PID int }
	if err := json.Unmarshal([]byte(p.run(t, "exec", "a", "doyen", "status", "-o", "json")), &agent); err != nil || agent.PID < 2 {
		t.Fatal(agent, err)
	}
	looks := fmt.Sprintf(`id -u; id -G; for pid in 1 %d; do
		for f in environ mem; do cat /proc/$pid/$f >/dev/null 2>/tmp/said; grep -q denied /tmp/said || echo "can read $pid's $f"; done
		for f in root exe cwd fd/0; do readlink /proc/$pid/$f >/dev/null && echo "can follow $pid's $f"; done
		ls /proc/$pid/root/run/secrets/cluster-key && echo "can reach $pid's files"; done 2>/dev/null
		ls -d /run/record /run/secrets /var/lib/doyen 2>/dev/null; ls /run/doyen`, agent.PID)
	if got := p.run(t, "exec", "fourth", "sh", "-c", looks); got != "10001\n10001 65532\ndoyen.leases\ndoyen.sock\n" {
		t.Errorf("the program:\n%s", got)
	}
	// Even with the agent's user, which the page advises against, a program can't see the agent's files.
	if got := p.run(t, "exec", "--user", "65532:65532", "fourth", "sh", "-c", looks); got != "65532\n65532\ndoyen.leases\ndoyen.sock\n" {
		t.Errorf("with the agent's user:\n%s", got)
	}
	for _, order := range []string{"drain on", "keys rotate", "allow reports --agents a", "voters remove b", "settings set lease=2s", "leave", "restart"} {
		out, err := p.try("exec", "fourth", "sh", "-c", "doyen "+order)
		if err == nil || !strings.Contains(out, "admin") {
			t.Errorf("doyen %s: %v %s", order, err, out)
		}
	}

	// The record outlives a life, in memory that only the agent mounts.
	before := p.run(t, "exec", "b", "doyen", "leader", "-o", "json", "reports")
	host := strings.TrimSpace(p.run(t, "inspect", "--format", "{{.State.Pid}}", "a"))
	run(t, "nsenter", "--target", host, "--pid", "kill", "-9", fmt.Sprint(agent.PID))
	p.await(t, `"life":2,`, "exec", "a", "doyen", "status", "-o", "json")
	term := regexp.MustCompile(`"term":\d+`)
	if after := p.run(t, "exec", "b", "doyen", "leader", "-o", "json", "reports"); term.FindString(after) != term.FindString(before) {
		t.Errorf("its agent was killed, and %s follows %s", after, before)
	}
}
