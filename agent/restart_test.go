package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/keeper"
	"github.com/doyen-election/doyen/testbed/executable"
	"github.com/doyen-election/doyen/testbed/loopbacks"
)

// checked is what `doyen agent --check-config -o json` prints for a configuration.
func checked(t *testing.T, c settings.Config, format int) string {
	t.Helper()
	c, err := c.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{agent.RecordFormatKey: format}
	for _, s := range settings.All() {
		values[s.Name] = s.JSON(&c)
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// programFile writes a program that only prints a text.
func programFile(t *testing.T, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "doyen")
	}
	// The file gets its name by a rename, as packages do it: a file that is being written can't be executed.
	err := executable.Write(path+".new", []byte("#!/bin/sh\n"+text+"\n"))
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// installed is a process whose program only prints the text. Trial runs the program as a keeper would.
func installed(t *testing.T, text string) agent.Process {
	t.Helper()
	program := programFile(t, "", text)
	return agent.Process{Program: program, Trial: func(ctx context.Context) ([]byte, error) {
		printed, err := exec.CommandContext(ctx, program).CombinedOutput()
		return bytes.TrimSpace(printed), err
	}}
}

// If a restart would fail for a reason that can be seen before, the agent refuses it with the reason, and goes on.
func TestARestartThatWouldFailIsRefused(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, text, _ := net.SplitHostPort(busy.Addr().String())
	taken, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	c, around := lone(t), installed(t, "true")
	client, out, stop := start(t, c, around)
	prints := func(change func(*settings.Config)) string {
		next := c
		change(&next)
		return "cat <<'END'\n" + checked(t, next, record.Format) + "\nEND"
	}
	for name, refused := range map[string]struct{ program, want string }{
		"another program":      {"true", "is not Doyen"},
		"another JSON":         {"echo '{}'", "is not Doyen"},
		"a bad configuration":  {"echo 'doyen: --lease: bad' >&2; exit 78", "can't start with this configuration (exit status 78): --lease: bad"},
		"one that dies":        {"kill -9 $$", "can't be started (signal: killed)"},
		"name":                 {prints(func(c *settings.Config) { c.Name = "b" }), `--name has changed from "a" to "b"`},
		"cluster":              {prints(func(c *settings.Config) { c.Cluster = "other" }), "--cluster has changed"},
		"data directory":       {prints(func(c *settings.Config) { c.DataDir = "/elsewhere" }), "--data-dir has changed"},
		"socket":               {prints(func(c *settings.Config) { c.Socket = "/elsewhere" }), "--socket has changed"},
		"record directory":     {prints(func(c *settings.Config) { c.RecordDir = "/elsewhere" }), "--record-dir has changed"},
		"quorum":               {prints(func(c *settings.Config) { c.Quorum = false }), "stop all, change it, start all"},
		"algorithm":            {prints(func(c *settings.Config) { c.Algorithm = "ring" }), "--algorithm has changed"},
		"lease":                {prints(func(c *settings.Config) { c.Lease = 7 * time.Second }), `--lease has changed from "3s" to "7s"`},
		"gossip port is taken": {prints(func(c *settings.Config) { c.GossipPort = taken }), "--gossip-port: 127.0.0.1 port " + text + " is in use"},
		"peer port is taken":   {prints(func(c *settings.Config) { c.PeerPort = taken }), "--peer-port: 127.0.0.1 port " + text + " is in use"},
		"http is taken":        {prints(func(c *settings.Config) { c.HTTP = busy.Addr().String() }), "--http: " + busy.Addr().String() + " is in use"},
		"foreign address":      {prints(func(c *settings.Config) { c.Bind, c.Advertise = "192.0.2.1", "192.0.2.1" }), "192.0.2.1 is not an address of this host"},
	} {
		programFile(t, around.Program, refused.program)
		outcome := restart(t, client)
		if outcome.Done || !strings.Contains(outcome.Message, refused.want) {
			t.Errorf("%s: %+v, want %q", name, outcome, refused.want)
		}
		if !strings.Contains(out.String(), "a restart was refused") {
			t.Errorf("%s: the log has no word of it:\n%s", name, out)
		}
	}
	if err := os.Remove(around.Program); err != nil {
		t.Fatal(err)
	}
	if outcome := restart(t, client); outcome.Done || !strings.Contains(outcome.Message, "can't be started") {
		t.Errorf("no program file: %+v", outcome)
	}
	if status, _ := get(t, client, "/livez"); status != http.StatusOK {
		t.Errorf("the agent suffered: %d", status)
	}
	if err := stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// After an upgrade from 0.3.0, that version's keeper runs until the service is restarted.
func TestARestartUnderAnOlderKeeperSaysWhatToDo(t *testing.T) {
	t.Parallel()
	around := installed(t, "true")
	around.Trial = func(context.Context) ([]byte, error) { return nil, keeper.ErrOlder }
	client, _, _ := start(t, lone(t), around)
	if outcome := restart(t, client); outcome.Done || outcome.Message != keeper.ErrOlder.Error() {
		t.Errorf("%+v", outcome)
	}
}

// An address that a reload has added is in use by this agent itself, so a restart accepts it. It also accepts a new check.
func TestARestartAfterAReloadFindsItsOwnAddress(t *testing.T) {
	t.Parallel()
	c := lone(t)
	next := c
	next.HTTP = fmt.Sprintf("127.0.0.1:%d", loopbacks.FreePorts(t, 1)[0])
	c.RecordDir = filepath.Join(t.TempDir(), "missing", "too") // without a record, the process hands over
	next.RecordDir = c.RecordDir
	text := strings.Replace(checked(t, next, record.Format), `"check":""`, `"check":{"command":"true"}`, 1) // a check of the host
	around := installed(t, "echo a warning >&2\ncat <<'END'\n"+text+"\nEND")
	around.Reread = func() (settings.Config, error) { return next, nil }
	client, _, _ := start(t, c, around)
	response, err := client.Post("http://d/v1/reload", "application/json", nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	response.Body.Close()
	if outcome := restart(t, client); !outcome.Done {
		t.Errorf("%+v", outcome)
	}
}

// outcome is the answer to POST /v1/restart.
type outcome struct {
	Done    bool
	Message string
}

func restart(t *testing.T, client *http.Client) (o outcome) {
	t.Helper()
	response, err := client.Post("http://d/v1/restart", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(body, &o)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, string(body), err)
	}
	return o
}
