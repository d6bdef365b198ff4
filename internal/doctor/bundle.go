package doctor

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

const (
	maxFile     = 1 << 20 // of a longer file, only the end is read
	partTimeout = 10 * time.Second
)

// calls are the agent's answers in a bundle: the name of the file, and the path of the call.
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

// procFiles are the files in which the kernel describes the agent's process (below /proc/PID) and its host. Not
// the environment and the command line: they may contain secrets.
var procFiles = struct{ process, host []string }{
	process: []string{"status", "limits", "wchan", "cgroup", "io", "schedstat", "smaps_rollup", "net/snmp", "net/sockstat"},
	host:    []string{"loadavg", "meminfo", "version", "pressure/cpu", "pressure/io", "pressure/memory", "sys/kernel/random/boot_id"},
}

// keyShaped matches what looks like a cluster key: the base64 of 32 bytes.
var keyShaped = regexp.MustCompile(`[A-Za-z0-9+/]{43}=`)

// Missing is a part that a bundle does not have, and the reason.
type Missing struct {
	Part   string `json:"part"`
	Why    string `json:"why"`
	Needed bool   `json:"needed"` // whether it counts as a failure: some hosts don't have the part, and some users may not read it
}

// Bundle is a bug report about one agent.
type Bundle struct {
	Version  string        // the version of this program
	Profile  time.Duration // how long to record a CPU profile, in whole seconds
	Findings []Finding     // the doctor's findings

	Agent   string    // the agent's name
	Away    string    // why the agent does not answer; empty: it answers
	Parts   []string  // the files in the bundle
	Missing []Missing // the files that are not in it

	archive *tar.Writer
	folder  string
	now     time.Time
}

// Write writes everything known about a doctor's agent as a tar.gz. A part that fails becomes Missing.
func (b *Bundle) Write(ctx context.Context, d *Doctor, to io.Writer) error {
	if d == nil { // the configuration can't be read
		d = New(settings.Default(), nil, "")
	}
	c := client.New(d.config.Socket)
	defer c.Close()
	text, err := get(ctx, c, calls[0].path, partTimeout)
	if away, is := errors.AsType[*client.UnreachableError](err); is {
		b.Away = away.Reason
	}
	var own api.Agent
	if json.Unmarshal(text, &own) != nil || own.PID <= 0 {
		own.Name, own.PID = d.config.Name, d.holder()
	}
	b.now = time.Now().Truncate(time.Second)
	b.Agent, b.folder = own.Name, "doyen-debug-"+own.Name+"-"+b.now.UTC().Format("20060102T150405Z")
	squeezed := gzip.NewWriter(to)
	b.archive = tar.NewWriter(squeezed)
	findings, _ := json.Marshal(b.Findings) // marshalling findings never fails
	b.add("version.txt", []byte(b.Version+"\n"), nil)
	b.add("doctor.json", findings, nil)
	b.add(calls[0].file, text, err)
	for _, call := range calls[1:] {
		b.ask(ctx, c, call.file, call.path, 0)
	}
	b.ask(ctx, c, "cpu.pprof", "/v1/debug/profile?seconds="+strconv.Itoa(int(b.Profile/time.Second)), b.Profile)
	b.addHost(ctx, d, own.PID)
	if len(b.Missing) > 0 {
		list, _ := json.Marshal(b.Missing)
		b.add("missing.json", list, nil)
	}
	return errors.Join(b.archive.Close(), squeezed.Close())
}

// ask adds the agent's answer to a call, unless an earlier call has shown that the agent does not answer.
func (b *Bundle) ask(ctx context.Context, c *client.Client, file, path string, longer time.Duration) {
	if b.Away != "" {
		b.add(file, nil, errors.New(b.Away))
		return
	}
	text, err := get(ctx, c, path, partTimeout+longer)
	b.add(file, text, err)
}

func get(ctx context.Context, c *client.Client, path string, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.Get(ctx, path)
}

// addHost adds what this host shows of an agent. It adds configuration and history from files only if the agent
// does not answer.
func (b *Bundle) addHost(ctx context.Context, d *Doctor, pid int) {
	if b.Away != "" {
		b.add("configuration-on-disk.yaml", d.config.WithoutSecrets(), nil)
		text, err := readSome(filepath.Join(d.config.DataDir, "history"))
		b.offer("history-on-disk.jsonl", text, err)
	}
	text, err := d.journal(ctx, d.unit())
	b.offer("journal.txt", text, err)
	for _, from := range []struct {
		folder string
		files  []string
	}{{strconv.Itoa(pid), procFiles.process}, {"", procFiles.host}} {
		if from.folder == "0" {
			continue // the agent does not run
		}
		for _, name := range from.files {
			text, err := readSome(filepath.Join(d.root, "proc", from.folder, name))
			b.offer("proc/"+name, text, err)
		}
	}
}

// holder returns the process that holds the data directory, or 0 if this user sees none.
func (d *Doctor) holder() int {
	lock, _ := filepath.EvalSymlinks(filepath.Join(d.config.DataDir, "lock"))
	text, _ := os.ReadFile(lock)
	word, _, _ := strings.Cut(string(text), " ")
	pid, err := strconv.Atoi(word)
	open, _ := filepath.Glob(filepath.Join(d.root, "proc", word, "fd", "*"))
	for _, fd := range open {
		if to, _ := os.Readlink(fd); to == lock && err == nil {
			return pid
		}
	}
	return 0
}

// readSome reads a file. Of a file longer than maxFile, it reads the end.
func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxFile {
		_, _ = f.Seek(-maxFile, io.SeekEnd)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// add adds a part, or the reason why it is missing. It removes everything that looks like a key: the log also
// has lines from hooks and other hosts.
func (b *Bundle) add(name string, text []byte, missing error) {
	if missing == nil {
		missing = b.put(name, text)
	}
	if missing != nil {
		b.Missing = append(b.Missing, Missing{name, missing.Error(), true})
	}
}

// offer does what add does, for a part that not every host has.
func (b *Bundle) offer(name string, text []byte, missing error) {
	if b.add(name, text, missing); missing != nil {
		b.Missing[len(b.Missing)-1].Needed = false
	}
}

func (b *Bundle) put(name string, text []byte) error {
	if filepath.Ext(name) != ".pprof" {
		text = keyShaped.ReplaceAll(text, []byte("(removed)"))
	}
	if err := b.archive.WriteHeader(&tar.Header{Name: b.folder + "/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.now}); err != nil {
		return err
	}
	if _, err := b.archive.Write(text); err != nil {
		return err
	}
	b.Parts = append(b.Parts, name)
	return nil
}
