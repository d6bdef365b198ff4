package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/client"
)

// The kernel accepts connections to a stopped agent's socket.
func TestAnAgentThatNeverAnswersIsUnreachable(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, command := range []string{"leader", "is-leader", "status", "members", "elections", "resign", "leave"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		var stdout, stderr bytes.Buffer
		code := run(ctx, []string{"doyen", command, "--socket", path}, nil, &stdout, &stderr)
		cancel()
		if code != exitUnreachable || stdout.Len() > 0 || !strings.Contains(stderr.String(), "no answer came in time from "+path) {
			t.Errorf("%s: code %d, stdout %q, stderr %q", command, code, &stdout, &stderr)
		}
	}
}

func TestAnInterruptedCallSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for command, changes := range map[string]bool{"resign": true, "status": false} {
		var stdout, stderr bytes.Buffer
		code := run(ctx, []string{"doyen", command}, nil, &stdout, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), "hint: interrupted before the agent answered\n") {
			t.Errorf("%s: code %d, stderr %q", command, code, &stderr)
		}
		if strings.Contains(stderr.String(), "; the request may still take effect\n") != changes {
			t.Errorf("%s changes something: %t, stderr %q", command, changes, &stderr)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnAnswerThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, args := range [][]string{
		{"version"}, {"keygen"}, {"completion", "bash"}, {"agent", "--check-config", "--name", "a"}, {"version", "-o", "json"},
	} {
		var stderr bytes.Buffer
		code := run(t.Context(), append([]string{"doyen"}, args...), nil, fullDisk{}, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%v: code %d, stderr %q", args, code, &stderr)
		}
	}
}

func TestReport(t *testing.T) {
	tests := []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{silentExit{2}, 2, ""},
		{errors.New("plain"), 1, "doyen: plain\n"},
		{usage("do this", "what %d", 7), 64, "doyen: what 7\nhint: do this\n"},
		{&settings.Error{Flag: "socket", Problem: "/s is in use", Hint: "stop the other agent"}, 78,
			"doyen: --socket: /s is in use; stop the other agent\n"},
		{fmt.Errorf("run: %w", &settings.Error{Problem: "x"}), 78, "doyen: run: x\n"},
		{fmt.Errorf("ask: %w", &client.UnreachableError{Reason: "gone", Hint: "start it"}), 3, "doyen: ask: gone\nhint: start it\n"},
		{errors.New("evil\x1b[2J\nline"), 1, "doyen: evil?[2J?line\n"},
	}
	for _, test := range tests {
		var stderr bytes.Buffer
		if code := report(&stderr, test.err); code != test.code || stderr.String() != test.text {
			t.Errorf("%v: code %d, %q; want %d, %q", test.err, code, &stderr, test.code, test.text)
		}
	}
}

func TestEverySettingHasItsOwnPlace(t *testing.T) {
	var c settings.Config
	seen := map[any]string{}
	for _, s := range settings.All() {
		at := s.Field(&c)
		if other := seen[at]; other != "" {
			t.Errorf("--%s and --%s set the same field", s.Name, other)
		}
		seen[at] = s.Name
		if s.Env() != strings.ToUpper(s.Env()) || strings.Contains(s.Env(), "-") {
			t.Errorf("--%s has the variable %s", s.Name, s.Env())
		}
	}
}

func FuzzCommandLine(f *testing.F) {
	for _, seed := range []string{"leader payments -o json", "--socket x leader -- -a", "agent --quorum=false", "help leader", "-h", "transfer --to", "- -- -", "run e --grace 1s -- cmd -o x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := append([]string{"doyen"}, strings.Fields(text)...)
		l, err := parse(args)
		if err != nil {
			if code := report(&bytes.Buffer{}, err); code != exitUsage {
				t.Fatalf("%q: code %d", args, code)
			}
			return
		}
		// Every parsed argument was on the line, except for the command that help is about.
		for _, arg := range l.args {
			if !slices.Contains(args, arg) {
				t.Fatalf("%q became %q", args, l.args)
			}
		}
		// Flags have the same meaning in another form and before the arguments.
		again := []string{"doyen", l.command.name}
		for _, g := range l.given {
			again = append(again, "--"+g[0]+"="+g[1])
		}
		same, err := parse(slices.Concat(again, []string{"--"}, l.args))
		if err != nil || !slices.Equal(same.given, l.given) || !slices.Equal(same.args, l.args) {
			t.Fatalf("%q became %v and then %v: %v", args, l, same, err)
		}
		if _, err := l.context(t.Context()); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	})
}

// run does what the arguments ask for and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return (&shell{stdin: stdin, stdout: stdout, stderr: stderr, getenv: os.Getenv, catch: func(...os.Signal) {}}).run(ctx, args)
}

func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{"name: a\nvoters: [a, b]\n", "a: &a [*a]", "? {}\n: 1", "<<: {name: b}", "- name", "name: !!binary aGk=", "---\n---\n", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g := gathered{config: settings.Default(), source: map[string]string{}}
		for _, err := range g.readText("doyen.yaml", text) {
			if _, ok := errors.AsType[*settings.Error](err); !ok {
				t.Fatalf("not a configuration error: %v", err)
			}
		}
	})
}
