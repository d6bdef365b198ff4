package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/keeper"
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

// programFile writes a program file that only prints a text.
func programFile(t *testing.T, path, text string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "doyen")
	}
	// By a rename, as packages do: a file that is being written can't be executed.
	err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"+text+"\n"), 0o700)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A mistake that can be seen before a restart changes nothing: the agent says why, and goes on.
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
	c := lone(t)
	program := filepath.Join(t.TempDir(), "doyen")
	client, out, stop := start(t, c, agent.Process{Program: program})
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
		programFile(t, program, refused.program)
		outcome := restart(t, client)
		if outcome.Done || !strings.Contains(outcome.Message, refused.want) {
			t.Errorf("%s: %+v, want %q", name, outcome, refused.want)
		}
		if !strings.Contains(out.String(), "a restart was refused") {
			t.Errorf("%s: the log has no word of it:\n%s", name, out)
		}
	}
	if err := os.Remove(program); err != nil {
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

// Without its keeper the next process could only begin after a stop; a keeper can be added.
func TestARestartKeepsItsKeeper(t *testing.T) {
	t.Setenv("DOYEN_KEEPER_PAGE", "-1") // one that does not read what this agent writes
	c := lone(t)
	c.Keeper = true
	without := c
	without.Keeper = false
	program := programFile(t, "", "cat <<'END'\n"+checked(t, without, record.Format)+"\nEND")
	client, _, stop := start(t, c, agent.Process{Program: program, Life: keeper.Attach()})
	if outcome := restart(t, client); outcome.Done || !strings.Contains(outcome.Message, `--keeper has changed from "true" to "false"`) {
		t.Errorf("%+v", outcome)
	}
	if err := stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// An address that a reload has brought is this agent's own, and not taken; a check may be new.
func TestARestartAfterAReloadFindsItsOwnAddress(t *testing.T) {
	t.Parallel()
	c := lone(t)
	next := c
	next.HTTP = fmt.Sprintf("127.0.0.1:%d", loopbacks.FreePorts(t, 1)[0])
	c.RecordDir = filepath.Join(t.TempDir(), "missing", "too") // so that this process hands over
	next.RecordDir = c.RecordDir
	text := strings.Replace(checked(t, next, record.Format), `"check":""`, `"check":{"command":"true"}`, 1) // a check of the host
	program := programFile(t, "", "cat <<'END'\n"+text+"\nEND")
	client, _, _ := start(t, c, agent.Process{Program: program, Reread: func() (settings.Config, error) { return next, nil }})
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

// The process that was to be the next life leaves word of why it can't start, and no other does.
func TestOnlyAnExpectedStartLeavesWordOfItsFailure(t *testing.T) {
	t.Parallel()
	c := lone(t)
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	c.RecordDir = filepath.Join(t.TempDir(), "missing", "too") // so that this process hands over, and can start again
	agent.LeaveWord(c.Socket, fmt.Errorf("not expected"))
	if why := agent.NextFailed(c.Socket); why != "" {
		t.Errorf("%q", why)
	}
	program := programFile(t, "", "cat <<'END'\n"+checked(t, c, record.Format)+"\nEND")
	client, _, stop := start(t, c, agent.Process{Program: program})
	if outcome := restart(t, client); !outcome.Done {
		t.Fatalf("%+v", outcome)
	}
	_ = stop()
	if why := agent.NextFailed(c.Socket); why != "" {
		t.Errorf("%q", why)
	}
	agent.LeaveWord(c.Socket, fmt.Errorf("the first line\nthe second"))
	if why := agent.NextFailed(c.Socket); why != "the first line" {
		t.Errorf("%q", why)
	}
	_, _, stop = start(t, c) // in vain until the former one has ended
	defer stop()
	if why := agent.NextFailed(c.Socket); why != "" {
		t.Errorf("after a start that worked: %q", why)
	}
}
