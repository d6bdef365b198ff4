package doctor

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// maxProc bounds what is read of a file below /proc.
const maxProc = 1 << 20

// calls are the parts of a bundle that the agent answers, by the names of their files.
var calls = []struct{ file, path string }{
	{"status.json", "/v1/agent"},
	{"agents.json", "/v1/agents"},
	{"members.json", "/v1/members"},
	{"elections.json", "/v1/elections"},
	{"voters.json", "/v1/voters"},
	{"settings.json", "/v1/settings"},
	{"history.json", "/v1/history?limit=1024"},
	{"metrics.txt", "/metrics"},
	{"configuration.yaml", "/v1/debug/configuration"},
	{"log.txt", "/v1/debug/log"},
	{"goroutines.txt", "/v1/debug/goroutines"},
}

// procFiles are what the kernel shows of the agent's process (below /proc/PID) and of its host.
// The environment and the command line are not among them: they may hold secrets.
var procFiles = struct{ process, host []string }{
	process: []string{"status", "limits", "cgroup", "io", "schedstat", "smaps_rollup", "net/snmp", "net/sockstat"},
	host:    []string{"loadavg", "meminfo", "version", "pressure/cpu", "pressure/io", "pressure/memory", "sys/kernel/random/boot_id"},
}

// keyShaped is what a cluster key looks like: the base64 of 32 bytes.
var keyShaped = regexp.MustCompile(`[A-Za-z0-9+/]{43}=`)

// Missing is a part that a bundle does not have, and why.
type Missing struct {
	Part string `json:"part"`
	Why  string `json:"why"`
}

// Bundle is a bug report about one agent.
type Bundle struct {
	Version string        // of this program
	Profile time.Duration // of the CPU, in seconds
	Root    string        // of the file system

	Agent   string    `json:"agent"` // its name
	Parts   []string  `json:"parts"`
	Missing []Missing `json:"missing"`

	archive *tar.Writer
	folder  string
	now     time.Time
}

// Write writes the bundle as a tar.gz. If the agent can't be reached at all, it writes nothing and
// returns an *client.UnreachableError; a part that fails is Missing.
func (b *Bundle) Write(ctx context.Context, c *client.Client, to io.Writer) error {
	text, err := get(ctx, c, calls[0].path, askTimeout)
	if err != nil {
		return err
	}
	var own api.Agent
	if err := json.Unmarshal(text, &own); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", calls[0].path, err)
	}
	b.now = time.Now()
	b.Agent, b.folder = own.Name, "doyen-debug-"+own.Name+"-"+b.now.UTC().Format("20060102T150405Z")
	squeezed := gzip.NewWriter(to)
	b.archive = tar.NewWriter(squeezed)
	if err := b.add("version.txt", []byte(b.Version+"\n"), nil); err != nil {
		return err
	}
	for _, call := range calls {
		text, err := get(ctx, c, call.path, askTimeout)
		if err := b.add(call.file, text, err); err != nil {
			return err
		}
	}
	text, err = get(ctx, c, "/v1/debug/profile?seconds="+strconv.Itoa(int(b.Profile/time.Second)), b.Profile+askTimeout)
	if err := b.add("cpu.pprof", text, err); err != nil {
		return err
	}
	if err := b.addProc(own.PID); err != nil {
		return err
	}
	if len(b.Missing) > 0 {
		list, _ := json.Marshal(b.Missing) // always possible
		if err := b.add("missing.json", list, nil); err != nil {
			return err
		}
	}
	if err := b.archive.Close(); err != nil {
		return err
	}
	return squeezed.Close()
}

func get(ctx context.Context, c *client.Client, path string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.Get(ctx, path)
}

// addProc adds what the kernel shows. Not every kernel has every file.
func (b *Bundle) addProc(pid int) error {
	for _, from := range []struct {
		folder string
		files  []string
	}{{strconv.Itoa(pid), procFiles.process}, {"", procFiles.host}} {
		for _, name := range from.files {
			text, err := readSome(filepath.Join(b.Root, "proc", from.folder, name))
			if err != nil {
				b.Missing = append(b.Missing, Missing{"proc/" + name, err.Error()})
				continue
			}
			if err := b.add("proc/"+name, text, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxProc))
}

// add adds a part, or why it is missing. Anything in a text that could be a key is replaced:
// there should be none, but the log also has lines of hooks and of other hosts.
func (b *Bundle) add(name string, text []byte, missing error) error {
	if missing != nil {
		b.Missing = append(b.Missing, Missing{name, missing.Error()})
		return nil
	}
	if filepath.Ext(name) != ".pprof" {
		text = keyShaped.ReplaceAll(text, []byte("(removed)"))
	}
	b.Parts = append(b.Parts, name)
	if err := b.archive.WriteHeader(&tar.Header{Name: b.folder + "/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.now}); err != nil {
		return err
	}
	_, err := b.archive.Write(text)
	return err
}
