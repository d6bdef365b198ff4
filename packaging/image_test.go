package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// The image is unpacked and started as a runtime would: with a separate root, separate processes, network and
// user, and the agent as PID 1.
func TestTheImageRunsAnAgent(t *testing.T) {
	need(t, "unshare", "ip", "chroot")
	folder := t.TempDir()
	run(t, "tar", "-xf", file(t, "-image.tar"), "-C", folder)
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v %v", manifest, err)
	}
	if index, err = index.ImageIndex(manifest.Manifests[0].Digest); err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v %v", manifest, err)
	}
	if p := manifest.Manifests[0].Platform; p == nil || p.OS != "linux" || p.Architecture != runtime.GOARCH {
		t.Errorf("its platform is %v", p)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpack(t, image, root)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}

	script := `set -e; ip link set lo up; mount --make-rprivate /; mkdir -p "$0/proc"; mount -t proc proc "$0/proc"; user=$1; shift; exec chroot --userspec="$user" "$0" "$@"`
	args := append([]string{"--net", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c", script, root, config.Config.User}, config.Config.Entrypoint...)
	cmd := exec.CommandContext(t.Context(), "unshare", append(args, config.Config.Cmd...)...)
	cmd.Env = config.Config.Env
	cmd.Env[0] += ":/usr/sbin:/sbin:/bin" // for the script
	var log strings.Builder
	cmd.Stderr = &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		if t.Failed() {
			t.Log(log.String())
		}
	}()

	socket := filepath.Join(root, "run/doyen/doyen.sock")
	var agent struct {
		PID     int
		Version string
	}
	ask(t, socket, "/v1/agent", &agent, ended)
	if agent.Version != made.version {
		t.Errorf("it runs version %q", agent.Version)
	}
	var elected struct {
		Leader *struct{ Name string }
	}
	for elected.Leader == nil {
		ask(t, socket, "/v1/elections/default", &elected, ended)
	}
	// PID 1 of a namespace gets only signals that it catches, so it must catch this one.
	children, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/task/" + strconv.Itoa(cmd.Process.Pid) + "/children")
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// ask repeats the question until it gets an answer.
func ask(t *testing.T, socket, path string, answer any, ended <-chan error) {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	limit := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		response, err := client.Get("http://doyen" + path)
		if err == nil && response.StatusCode == http.StatusOK {
			defer response.Body.Close()
			if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
				t.Fatal(err)
			}
			return
		}
		if err == nil {
			response.Body.Close()
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it has ended: %v", err)
		case <-limit:
			t.Fatalf("no answer: %v %v", response, err)
		}
	}
}

func unpack(t *testing.T, image v1.Image, root string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		r := tar.NewReader(content)
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(root, h.Name)
			if h.Typeflag == tar.TypeDir {
				err = os.Mkdir(to, 0o700)
			} else {
				var text []byte
				if text, err = io.ReadAll(r); err == nil {
					err = os.WriteFile(to, text, 0o600)
				}
			}
			if err == nil {
				err = os.Chown(to, h.Uid, h.Gid)
			}
			if err == nil {
				err = os.Chmod(to, h.FileInfo().Mode())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
