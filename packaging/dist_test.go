package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// made is what all tests look at: the files of a release for this machine.
var made struct{ dir, version string }

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == filteredWord {
		fmt.Fprintln(os.Stderr, runFiltered(os.Args[2:]))
		os.Exit(1)
	}
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "doyen-release")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	made.dir = filepath.Join(dir, "dist")
	if err := dist(made.dir, []string{"linux/" + runtime.GOARCH}); err != nil {
		return 0, err
	}
	archive, err := filepath.Glob(filepath.Join(made.dir, "doyen-*-linux-*.tar.gz"))
	if err != nil || len(archive) != 1 {
		return 0, fmt.Errorf("archives %v, %w", archive, err)
	}
	made.version = strings.Split(filepath.Base(archive[0]), "-")[1]
	return m.Run(), nil
}

// file returns the one file of the release with that ending.
func file(t *testing.T, ending string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(made.dir, "*"+ending))
	if err != nil || len(found) != 1 {
		t.Fatalf("files of the release that end with %s: %v, %v", ending, found, err)
	}
	return found[0]
}

func need(t *testing.T, names ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making another system needs root")
	}
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}

func run(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", command, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The source lies elsewhere, and so do the files in between.
func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "another", "place")
	if err := os.MkdirAll(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "cp", "-a", "..", elsewhere+"/source")
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "-out", elsewhere+"/dist", "-only", "linux/"+runtime.GOARCH)
	cmd.Dir = elsewhere + "/source/packaging"
	cmd.Env = append(os.Environ(), "TZ=Asia/Tokyo", "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run(t, "diff", "-r", made.dir, elsewhere+"/dist")
	cmd = exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", "SHA256SUMS")
	cmd.Dir = made.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestTheRPMIsUnderstood(t *testing.T) {
	need(t, "rpm")
	rpm := file(t, ".rpm")
	for query, want := range map[string][]string{
		"-i": {"Name        : doyen", "Version     : " + made.version, "License     : Apache-2.0", "Build Host  : localhost"},
		"-l": {"/usr/bin/doyen\n", "/usr/lib/systemd/system/doyen.service\n", "/usr/lib/systemd/system/doyen-act.service\n", "/usr/share/man/man1/doyen.1.gz\n", "/usr/share/zsh/site-functions/_doyen\n"},
		// The scripts are the same as in the deb, which is installed and removed.
		"--scripts": {"doyen restart", "systemctl --no-reload disable --now doyen-act.service doyen.service"},
	} {
		out := run(t, "rpm", "-qp", query, rpm)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("rpm -qp %s does not show %q:\n%s", query, w, out)
			}
		}
	}
	run(t, "rpm", "-K", "--nosignature", rpm) // its digests
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "rpm2cpio "+rpm+" | cpio -t --quiet").CombinedOutput()
	if err == nil && !strings.Contains(string(out), "usr/bin/doyen") {
		t.Errorf("its content: %s", out)
	}
}
