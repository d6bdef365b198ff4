// Command packaging makes what a release consists of: archives, deb and rpm packages, a
// container image and their checksums, in one folder. `make dist` runs it.
//
// It guarantees that the same commit and the same Go give the same bytes: every timestamp is the commit's, and
// the files contain no path, host or user of the machine. It is a separate module, so that the product does not
// depend on its requirements.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "../dist", "`FOLDER` for the files")
	only := flag.String("only", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "the `PLATFORMS`")
	kind := flag.String("kind", "", "make only this `KIND` of file (deb, rpm or image), beside what the folder has, without checksums")
	sign := flag.String("sign", "", "sign the checksums with the key in this `FILE`, by ssh-keygen")
	flag.Parse()
	if err := dist(*out, strings.Split(*only, ","), *kind, *sign); err != nil {
		log.Fatalf("packaging: %v", err)
	}
}

// release is what all files of one release share.
type release struct {
	root    string // of the source
	work    string // a folder for temporary files
	out     string
	version string
	commit  string
	made    time.Time // when the commit was made
	help    help
}

// dist makes files of all kinds, or only of one kind if that is given.
func dist(out string, platforms []string, kind, sign string) error {
	if kind != "" && !slices.Contains([]string{"deb", "rpm", "image"}, kind) {
		return fmt.Errorf("%q is not a kind of file: deb, rpm and image are", kind)
	}
	r, err := newRelease(out, kind == "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	var images []platform
	for _, name := range platforms {
		system, arch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("%q is not a platform, such as linux/amd64", name)
		}
		p := platform{release: r, system: system, arch: arch}
		if kind == "" {
			if err := p.archive(); err != nil {
				return fmt.Errorf("archive for %s: %w", name, err)
			}
		}
		if system != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if kind != "" && kind != format {
				continue
			}
			if err := p.pack(format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, name, err)
			}
		}
		images = append(images, p)
	}
	if kind == "" || kind == "image" {
		if err := r.image(images); err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	if kind != "" {
		return nil
	}
	if err := r.checksums(); err != nil {
		return err
	}
	return r.sign(sign)
}

// versioned finds the version in agent/agent.go.
var versioned = regexp.MustCompile(`(?m)^var Version = "([^"]+)"`)

func newRelease(out string, empty bool) (*release, error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return nil, err
	}
	r := &release{root: root}
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "agent/agent.go"))
	if err != nil {
		return nil, fmt.Errorf("run this in its own folder, as make dist does: %w", err)
	}
	found := versioned.FindSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("agent/agent.go names no version")
	}
	r.version = string(found[1])
	if tag := os.Getenv("VERSION"); tag != "" {
		r.version = strings.TrimPrefix(tag, "v")
	}
	described, err := r.run(nil, "git", "-C", root, "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(described), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("git shows no commit: %q", described)
	}
	r.commit, r.made = commit[:12], time.Unix(unix, 0).UTC()
	// A file that git does not know could be built in or delivered, so it counts as a change.
	changed, err := r.run(nil, "git", "-C", root, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		r.commit += "+"
	}
	if empty {
		if err := os.RemoveAll(r.out); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return nil, err
	}
	if r.work, err = os.MkdirTemp("", "doyen-dist"); err != nil {
		return nil, err
	}
	r.help, err = r.readHelp()
	return r, err
}

// run runs a command and returns its output.
func (r *release) run(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return string(out), nil
}

// build builds doyen and returns the path of the program. With pie, each process loads the program at another
// address. That needs the system's loader, which an image does not have.
func (r *release) build(system, arch string, pie bool) (string, error) {
	mode := "exe"
	if pie {
		mode = "pie"
	}
	to := filepath.Join(r.work, strings.Join([]string{"doyen", system, arch, mode}, "-"))
	// Use the Go that has built this program: it is at least the one in this module's go.mod.
	_, err := r.run([]string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOFLAGS=", "GOTOOLCHAIN=" + runtime.Version() + "+auto"},
		"go", "build", "-buildmode="+mode, "-trimpath", "-buildvcs=false", "-tags", "nethttpomithttp2,urfave_cli_no_docs",
		"-ldflags", "-s -X github.com/doyen-election/doyen/agent.Version="+r.version+" -X main.commit="+r.commit,
		"-o", to, "./cmd/doyen")
	return to, err
}

// checksums writes SHA256SUMS, in the format of sha256sum.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	text := ""
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		text += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), e.Name())
	}
	fmt.Print(text)
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text), 0o644)
}

// sign writes SHA256SUMS.sig with the key in the named file. If key is empty, sign does nothing.
func (r *release) sign(key string) error {
	if key == "" {
		return nil
	}
	key, err := filepath.Abs(key)
	if err != nil {
		return err
	}
	_, err = r.run(nil, "ssh-keygen", "-Y", "sign", "-n", "file", "-f", key, filepath.Join(r.out, "SHA256SUMS"))
	return err
}
