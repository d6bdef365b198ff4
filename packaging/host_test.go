package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The package is installed on a new Debian, in the usual way. Then the host boots in separate namespaces, with
// systemd as PID 1, and testdata/host.sh runs on it.
func TestADebianHost(t *testing.T) {
	need(t, "systemd-nspawn")
	root := filepath.Join(t.TempDir(), "root")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run(t, "cp", "-a", debian(t), root)
	run(t, "cp", file(t, ".deb"), root+"/doyen.deb")
	run(t, "chroot", root, "dpkg", "-i", "/doyen.deb")
	if v := run(t, "chroot", root, "doyen", "version"); !strings.HasPrefix(v, "doyen "+made.version+" (") || strings.Contains(v, "(go") {
		t.Errorf("version and commit: %s", v)
	}
	for page, want := range map[string]string{"doyen": "elect a leader among hosts", "doyen-agent": "--check-config"} {
		if text := run(t, "chroot", root, "man", page); !strings.Contains(text, want) {
			t.Errorf("man %s:\n%s", page, text)
		}
	}
	if warned := run(t, "chroot", root, "sh", "-c", "for p in /usr/share/man/man1/doyen*; do man --warnings -l $p 2>&1 >/dev/null; done"); warned != "" {
		t.Error(warned)
	}
	if keys := run(t, "chroot", root, "stat", "-c", "%U %a", "/etc/doyen/keys"); keys != "doyen 700\n" {
		t.Errorf("/etc/doyen/keys: %s", keys)
	}
	run(t, "chroot", root, "bash", "-n", "/usr/share/bash-completion/completions/doyen")

	script, err := os.ReadFile("testdata/host.sh")
	if err != nil {
		t.Fatal(err)
	}
	const unit = "[Service]\nType=oneshot\nExecStart=/host.sh\nStandardOutput=file:/host.log\nStandardError=file:/host.log\nExecStopPost=systemctl --no-block poweroff\n" +
		"[Unit]\nAfter=multi-user.target\n[Install]\nWantedBy=multi-user.target\n"
	for name, content := range map[string]string{"host.sh": string(script), "etc/systemd/system/host.service": unit} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "systemctl", "--root="+root, "enable", "host.service")
	boot := exec.CommandContext(ctx, "systemd-nspawn", "--directory="+root, "--register=no", "--keep-unit", "--private-network", "--boot")
	boot.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	console, err := boot.CombinedOutput()
	log, unread := os.ReadFile(filepath.Join(root, "host.log"))
	if unread != nil && !strings.Contains(string(console), "Welcome to") {
		t.Skipf("no host can be booted here: %v\n%s", err, console)
	}
	if !strings.HasSuffix(string(log), "all was well\n") {
		t.Fatalf("%v\n%s\n%s", err, console, log)
	}
	t.Logf("%s", log)
}
