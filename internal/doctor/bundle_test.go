package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/act/health"
)

// ready closes a channel once the agent has logged that it is ready.
type ready struct {
	io.Writer
	seen chan struct{}
}

func (r *ready) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(" ready: socket ")) {
		close(r.seen)
	}
	return len(p), nil
}

func TestABundleHasNoKeyAndNoSecretInIt(t *testing.T) {
	dir, err := os.MkdirTemp("", "doyen") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	key := bytes.Repeat([]byte("\xc3secret!"), 4)
	text := base64.StdEncoding.EncodeToString(key)
	c := settings.Default()
	c.Name, c.DataDir, c.Socket, c.LogLevel = "a", filepath.Join(dir, "data"), filepath.Join(dir, "s"), "debug"
	c.GossipPort, c.PeerPort, c.KeyFile = 0, 0, filepath.Join(dir, "key")
	c.OnChange = "/bin/false --password hidden2 " + text
	c.Elections = map[string]settings.ElectionConfig{"payments": {OnChange: "/bin/true hidden3", Check: health.Check{Command: "/bin/true hidden5"}}}
	c.HostCheck.Command = "/usr/bin/env TOKEN=hidden1 hidden4=x /bin/true hidden6"
	if err := os.WriteFile(c.KeyFile, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stderr, ended := &ready{seen: make(chan struct{})}, make(chan error, 1)
	go func() { ended <- agent.Run(ctx, c, agent.Process{}, stderr) }()
	select {
	case <-stderr.seen:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("the agent was not ready within a minute")
	}
	asks := client.New(c.Socket)
	if _, err := asks.SetLogLevel(ctx, "debug", time.Minute); err != nil {
		t.Error(err)
	}
	asks.Close()
	collect := func() (Bundle, map[string][]byte) {
		b, file := Bundle{Version: "1", Profile: time.Second, Findings: []Finding{ok("x", "fine")}}, bytes.Buffer{}
		d := New(c, nil, "")
		d.journal = func(context.Context, string) ([]byte, error) { return []byte("the key is " + text + ".\n"), nil }
		if err := b.Write(context.Background(), d, &file); err != nil {
			t.Error(err)
		}
		return b, unpack(t, file.Bytes())
	}
	b, parts := collect()
	if pid := New(c, nil, "").holder(); pid != os.Getpid() && runtime.GOOS == "linux" {
		t.Errorf("process %d holds the data directory, want %d", pid, os.Getpid())
	}
	identity, err := os.ReadFile(filepath.Join(c.DataDir, "identity.key"))
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	if pid := New(c, nil, "").holder(); pid != 0 {
		t.Errorf("process %d holds the data directory, but the agent has ended", pid)
	}
	away, kept := collect()
	for _, name := range []string{"version.txt", "doctor.json", "journal.txt", "status.json", "agents.json", "members.json", "elections.json", "voters.json", "history.json", "metrics.txt", "configuration.yaml", "log.txt", "goroutines.txt", "cpu.pprof", "proc/loadavg"} {
		if len(parts[name]) == 0 && !(strings.HasPrefix(name, "proc/") && len(b.Missing) > 0) {
			t.Errorf("%s is missing or empty: %+v", name, b.Missing)
		}
	}
	if !bytes.Contains(parts["configuration.yaml"], []byte("on-change: \"/bin/false …\"")) || !bytes.Contains(parts["log.txt"], []byte("level=INFO")) {
		t.Errorf("%s\n%s", parts["configuration.yaml"], parts["log.txt"])
	}
	if b.Away != "" || b.Agent != "a" || !bytes.Contains(parts["doctor.json"], []byte("fine")) {
		t.Errorf("%+v", b)
	}
	for _, name := range []string{"version.txt", "doctor.json", "journal.txt", "configuration-on-disk.yaml", "history-on-disk.jsonl", "missing.json"} {
		if len(kept[name]) == 0 {
			t.Errorf("after the agent's end %s is missing or empty: %+v", name, away.Missing)
		}
	}
	if !strings.Contains(away.Away, "no socket exists") || !slices.Contains(away.Missing, Missing{"cpu.pprof", away.Away, true}) || away.Agent != "a" {
		t.Errorf("after the agent's end: %+v", away)
	}
	secrets := []string{text, string(key), hex.EncodeToString(key), string(identity), base64.StdEncoding.EncodeToString(identity), hex.EncodeToString(identity), "hidden1", "hidden2", "hidden3", "hidden4", "hidden5", "hidden6"}
	refuse(t, parts, secrets)
	refuse(t, kept, secrets)
}

// refuse reports each secret that it finds in a file.
func refuse(t *testing.T, parts map[string][]byte, secrets []string) {
	t.Helper()
	for name, part := range parts {
		if name == "cpu.pprof" {
			plain, err := gzip.NewReader(bytes.NewReader(part))
			if err != nil {
				t.Fatal(err)
			}
			if part, err = io.ReadAll(plain); err != nil {
				t.Fatal(err)
			}
		}
		for _, secret := range secrets {
			if bytes.Contains(part, []byte(secret)) {
				t.Errorf("%s has %q in it", name, secret)
			}
		}
	}
}

// unpack returns the files of a bundle. It demands that only their owner may read them.
func unpack(t *testing.T, file []byte) map[string][]byte {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]byte{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		if parts[name], err = io.ReadAll(archive); err != nil || header.Mode != 0o600 {
			t.Errorf("%s: mode %o, %v", name, header.Mode, err)
		}
	}
}

// The log has the lines of hooks unchanged, so everything in the shape of a key is removed.
func TestWhatLooksLikeAKeyIsRemoved(t *testing.T) {
	var file bytes.Buffer
	squeezed := gzip.NewWriter(&file)
	b := Bundle{archive: tar.NewWriter(squeezed), folder: "f"}
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, 32))
	b.add("log.txt", []byte("the key is "+key+"\n12D3KooWB7gL\n"), nil)
	if err := errors.Join(b.archive.Close(), squeezed.Close()); err != nil {
		t.Fatal(err)
	}
	if got := string(unpack(t, file.Bytes())["log.txt"]); got != "the key is (removed)\n12D3KooWB7gL\n" {
		t.Errorf("%q", got)
	}
}
