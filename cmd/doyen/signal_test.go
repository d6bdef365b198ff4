package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client"
)

// The reader of the log may end, with its session for example. That must not cost a leadership.
func TestTheAgentOutlivesTheReaderOfItsLog(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := &exec.Cmd{
		Path: self, Stderr: writer, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=10"),
		Args: []string{"doyen", "agent", "--name", "a", "--data-dir", filepath.Join(dir, "data"), "--socket", socket,
			"--gossip-port", "0", "--peer-port", "0", "--profile", "lan", "--log-level", "debug"},
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { command.Process.Kill() })
	defer stuck.Stop()
	writer.Close()
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		if strings.Contains(lines.Text(), " ready: ") {
			break
		}
	}
	reader.Close()
	c := client.New(socket)
	defer c.Close()
	for _, on := range []bool{true, false} { // both changes are logged
		if _, err := c.Drain(t.Context(), on); err != nil {
			t.Fatalf("drain %t: %v", on, err)
		}
	}
	if _, err := c.Leave(t.Context()); err != nil {
		t.Errorf("leave: %v", err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the agent ended: %v", err)
	}
}

// An agent that may become a keeper catches no signal before that: the keeper, another program, would not get
// it. All other commands catch signals.
func TestAnAgentCatchesNoSignalThatItsKeeperWouldNotKnowOf(t *testing.T) {
	for _, args := range [][]string{{"agent", "--check-config"}, {"version"}} {
		caught := false
		s := &shell{stdin: io.MultiReader(), stdout: io.Discard, stderr: io.Discard, getenv: os.Getenv, catch: func(...os.Signal) { caught = true }}
		s.run(t.Context(), append([]string{"doyen"}, args...))
		if caught == (args[0] == "agent") {
			t.Errorf("%v: caught %t", args, caught)
		}
	}
}

func TestHelpNeedsNoAgent(t *testing.T) {
	var stdout, stderr bytes.Buffer
	for _, args := range [][]string{{"help"}, {"--help"}, {"-h"}, {"help", "agent"}, {"agent", "--help"}, {"h", "help"}} {
		stdout.Reset()
		code := run(t.Context(), append([]string{"doyen"}, args...), io.MultiReader(), &stdout, &stderr)
		if code != exitOK || stdout.Len() == 0 || stderr.Len() > 0 {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, code, &stdout, &stderr)
		}
	}
}
