package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// lives answers as an agent whose boot ID changes after a request to restart, once it was asked `after` more
// times; negative: never. With ends, it closes the connection of that request.
func lives(t *testing.T, after int32, ends bool) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var restarted atomic.Bool
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/restart", func(w http.ResponseWriter, _ *http.Request) {
		restarted.Store(true)
		if ends {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"done":true,"message":"what this agent leads is handed over first, since x","waited_ms":9}`)
	})
	mux.HandleFunc("/v1/agent", func(w http.ResponseWriter, _ *http.Request) {
		boot := "1"
		if restarted.Load() && after >= 0 && asked.Add(1) > after {
			boot = "2"
		}
		fmt.Fprintf(w, `{"boot_id":%q,"version":"9.9.9"}`, boot)
	})
	server := &http.Server{Handler: mux}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return socket
}

func TestARestartIsShownWithItsOutcome(t *testing.T) {
	socket := lives(t, 3, false)
	var out, problems bytes.Buffer
	if code := run(t.Context(), []string{"doyen", "restart", "--socket", socket, "-o", "json"}, nil, &out, &problems); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &problems)
	}
	var outcome api.Outcome
	if err := json.Unmarshal(out.Bytes(), &outcome); err != nil || !outcome.Done || outcome.Message != "what this agent leads is handed over first, since x; version 9.9.9" || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Errorf("%q: %v", &out, err)
	}
}

// The agent already restarts for another caller, so it ends during the request.
func TestARestartJoinsOneThatIsUnderWay(t *testing.T) {
	socket := lives(t, 3, true)
	var out, problems bytes.Buffer
	if code := run(t.Context(), []string{"doyen", "restart", "--socket", socket}, nil, &out, &problems); code != exitOK || !strings.Contains(out.String(), "version 9.9.9") {
		t.Errorf("exit code %d: %s%s", code, &out, &problems)
	}
}

// The command waits only as long as it said, and reports what to do.
func TestANextProcessThatDoesNotComeIsAnError(t *testing.T) {
	socket := lives(t, -1, false)
	c := client.New(socket)
	defer c.Close()
	for name, missing := range map[string]struct{ socket, want string }{
		"the former one still answers": {socket, "the process before still answers"},
		"nobody answers":               {socket + "x", "no next process of the agent answers at " + socket + "x after 50ms"},
	} {
		var progress bytes.Buffer
		i := &invocation{shell: &shell{stderr: &progress}}
		_, err := i.awaitNext(t.Context(), client.New(missing.socket), "1", 50*time.Millisecond)
		if code := report(&progress, err); code != exitFailed || !strings.Contains(progress.String(), missing.want) || !strings.Contains(progress.String(), "\nhint: ") {
			t.Errorf("%s: exit code %d\n%s", name, code, &progress)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&invocation{shell: &shell{}}).awaitNext(ctx, c, "1", time.Minute); err == nil {
		t.Error("an interrupt did not end the wait")
	}
}
