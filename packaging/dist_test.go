package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// made has the release's files for this machine, which all tests use.
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
	if err := dist(made.dir, []string{"linux/" + runtime.GOARCH}, "", ""); err != nil {
		return 0, err
	}
	archive, err := filepath.Glob(filepath.Join(made.dir, "doyen-*-linux-*.tar.gz"))
	if err != nil || len(archive) != 1 {
		return 0, fmt.Errorf("archives %v, %w", archive, err)
	}
	made.version = strings.Split(filepath.Base(archive[0]), "-")[1]
	return m.Run(), nil
}

// file returns the only file of the release with that ending.
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

// The same commit is built in another folder, with other temporary folders.
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

func TestOneKindOfFileIsTheSame(t *testing.T) {
	out := t.TempDir()
	for _, kind := range []string{"deb", "rpm", "image"} {
		if err := dist(out, []string{"linux/" + runtime.GOARCH}, kind, ""); err != nil {
			t.Fatal(err)
		}
		if said := run(t, "make", "-C", "..", "--dry-run", kind, "ARCH=arm64"); !strings.Contains(said, "go run . -kind "+kind+" -only linux/arm64\n") {
			t.Errorf("make %s runs %s", kind, said)
		}
	}
	run(t, "diff", "-r", "--exclude=*.tar.gz", "--exclude=SHA256SUMS", made.dir, out)
	if err := dist(out, []string{"linux/" + runtime.GOARCH}, "dep", ""); err == nil {
		t.Error("there is a kind dep")
	}
}

// A file that git does not know would be built into the program too.
func TestAFileThatGitDoesNotKnowChangesTheCommit(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	run(t, "cp", "-a", "..", source)
	const repository = `cd "$0" && rm -rf .git dist && git init -q && git add -A && git -c user.name=a -c user.email=a@example.org commit -qm one`
	run(t, "sh", "-c", repository, source)
	t.Chdir(source + "/packaging")
	commit := func() string {
		r, err := newRelease(t.TempDir(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(r.work)
		return r.commit
	}
	if c := commit(); len(c) != 12 {
		t.Errorf("the commit of a clean source is %s", c)
	}
	if err := os.WriteFile(source+"/cmd/doyen/more.go", []byte("package main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := commit(); !strings.HasSuffix(c, "+") {
		t.Errorf("with a file more it is %s", c)
	}
}

// The release is signed, and checked as docs/operations.md says.
func TestASignedReleaseIsChecked(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs ssh-keygen (openssh-client), which CI installs")
	}
	r := &release{root: t.TempDir(), out: t.TempDir()}
	key := filepath.Join(r.root, "key")
	run(t, "cp", filepath.Join(made.dir, "SHA256SUMS"), r.out)
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key)
	if err := r.sign(key); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	check := regexp.MustCompile("`(ssh-keygen -Y verify [^`]*)`").FindSubmatch(page)
	if check == nil {
		t.Fatal("the page checks no signature")
	}
	script := `cd "$0" && SIGNER=us && echo "$SIGNER $(cat "$1.pub")" >signers && ` + strings.Replace(string(check[1]), "SIGNER", "$SIGNER", 1)
	run(t, "sh", "-c", script, r.out, key)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `cd "$0" && echo >>SHA256SUMS && `+script, r.out, key).CombinedOutput()
	if err == nil {
		t.Errorf("other checksums are accepted: %s", out)
	}
}

func TestTheRPMIsUnderstood(t *testing.T) {
	need(t, "rpm")
	rpm := file(t, ".rpm")
	for query, want := range map[string][]string{
		"-i": {"Name        : doyen", "Version     : " + made.version, "License     : Apache-2.0", "Build Host  : localhost"},
		"-l": {"/usr/bin/doyen\n", "/usr/lib/systemd/system/doyen.service\n", "/usr/lib/systemd/system/doyen-act.service\n", "/usr/share/man/man1/doyen.1.gz\n", "/usr/share/zsh/site-functions/_doyen\n"},
		// The deb has the same scripts. Other tests install and remove the deb.
		"--scripts": {"doyen restart", "systemctl --no-reload disable --now doyen-act.service doyen.service"},
	} {
		out := run(t, "rpm", "-qp", query, rpm)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("rpm -qp %s does not show %q:\n%s", query, w, out)
			}
		}
	}
	run(t, "rpm", "-K", "--nosignature", rpm) // checks the digests
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "rpm2cpio "+rpm+" | cpio -t --quiet").CombinedOutput()
	if err == nil && !strings.Contains(string(out), "usr/bin/doyen") {
		t.Errorf("its content: %s", out)
	}
}
