package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

type fakeKey struct{}

// fakeAgent answers calls as a scenario says. A scenario is a txtar archive with one file for each call. The
// file's name is the call, such as "GET /v1/agent". A status other than 200 may follow, or "hold", which keeps
// the answer open.
type fakeAgent struct {
	socket  string
	answers map[string]fakeAnswer

	mu   sync.Mutex
	last string // the last call and its body
}

type fakeAnswer struct {
	status int
	hold   bool
	body   []byte
}

func (f *fakeAgent) load(path string) error {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return err
	}
	f.answers = map[string]fakeAnswer{}
	for _, file := range archive.Files {
		words := strings.Fields(file.Name)
		answer := fakeAnswer{status: http.StatusOK, body: file.Data}
		if len(words) == 3 && words[2] == "hold" {
			answer.hold = true
		} else if len(words) == 3 {
			if answer.status, err = strconv.Atoi(words[2]); err != nil {
				return err
			}
		}
		f.answers[words[0]+" "+words[1]] = answer
	}
	return nil
}

func (f *fakeAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.RequestURI()
	in, _ := io.ReadAll(r.Body)
	if call != "GET /v1/agent" { // the guard of `doyen run` asks this in advance, at any time
		f.mu.Lock()
		f.last = strings.TrimSpace(call + " " + string(in))
		f.mu.Unlock()
	}
	answer, ok := f.answers[call]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": "not_found", "message": "no answer to " + call}})
		return
	}
	w.WriteHeader(answer.status)
	w.Write(answer.body)
	if answer.hold {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func fake(ts *testscript.TestScript) *fakeAgent { return ts.Value(fakeKey{}).(*fakeAgent) }

func agentScenario(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: agent SCENARIO")
	}
	f := fake(ts)
	// The path is relative to the test's working directory, not the script's.
	ts.Check(f.load(filepath.Join("testdata", "agents", args[0]+".txtar")))
	os.Remove(f.socket)
	listener, err := net.Listen("unix", f.socket)
	ts.Check(err)
	server := &http.Server{Handler: f}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener)
	}()
	ts.Defer(func() {
		server.Close()
		<-done
	})
}

func followCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: follow SIGNAL N FILE command...")
	}
	lines, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, args[3], args[4:]...)
	for _, name := range []string{"PATH", "HOME", "TZ", "GORACE", "DOYEN_SOCKET"} {
		command.Env = append(command.Env, name+"="+ts.Getenv(name))
	}
	stdout, err := command.StdoutPipe()
	ts.Check(err)
	command.Stderr = command.Stdout
	// Under nohup, this process ignores SIGHUP, and its children would too. A caught signal is not inherited.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	ts.Check(command.Start())
	var followed bytes.Buffer
	for reader := bufio.NewReader(stdout); lines > 0; lines-- {
		line, err := reader.ReadString('\n')
		followed.WriteString(line)
		if err != nil {
			break // the command ended early, as its exit code or FILE will show
		}
	}
	signals := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	ts.Check(command.Process.Signal(signals[args[0]]))
	_, err = io.Copy(&followed, stdout)
	ts.Check(errors.Join(err, command.Wait()))
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), followed.Bytes(), 0o600))
}

func askedCommand(ts *testscript.TestScript, neg bool, args []string) {
	f := fake(ts)
	f.mu.Lock()
	defer f.mu.Unlock()
	if want := strings.Join(args, " "); f.last != want {
		ts.Fatalf("the last call was %q, want %q", f.last, want)
	}
}

func bodyCommand(ts *testscript.TestScript, neg bool, args []string) {
	answer, ok := fake(ts).answers[strings.Join(args[1:], " ")]
	if !ok {
		ts.Fatalf("the scenario has no such call")
	}
	if got := ts.ReadFile(args[0]); got != string(answer.body) {
		ts.Fatalf("stdout is\n%s\nwant\n%s", got, answer.body)
	}
}

func jsonCommand(ts *testscript.TestScript, neg bool, keys []string) {
	var object map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &object))
	for _, key := range keys {
		if _, ok := object[key]; !ok {
			ts.Fatalf("no key %q in %v", key, object)
		}
	}
}

// codeCommand is exec with an exact exit code: `! exec` accepts any code but 0.
func codeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
