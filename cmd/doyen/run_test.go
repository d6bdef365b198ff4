package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// A stopped agent's socket still takes connections; the kernel does that.
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

// An agent and the commands of one user must meet without being told where.
func TestEverySettingHasItsOwnPlace(t *testing.T) {
	var c settings.Config
	seen := map[any]string{}
	for _, s := range settings.All() {
		at := s.Field(&c)
		if other := seen[at]; other != "" {
			t.Errorf("--%s and --%s set the same field", s.Name, other)
		}
		seen[at] = s.Name
		if flagOf(s) == nil {
			t.Errorf("--%s has a type without a flag: %T", s.Name, at)
		}
		if s.Env() != strings.ToUpper(s.Env()) || strings.Contains(s.Env(), "-") {
			t.Errorf("--%s has the variable %s", s.Name, s.Env())
		}
	}
}

func FuzzArrange(f *testing.F) {
	for _, seed := range []string{"leader payments -o json", "--socket x leader -- -a", "agent --quorum=false", "help leader", "-h", "transfer --to", "- -- -"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		app := newApp(&shell{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, getenv: func(string) string { return "" }}, nil)
		args := append([]string{"doyen"}, strings.Fields(line)...)
		arranged, err := arrange(app, args)
		if err != nil {
			if code := report(&bytes.Buffer{}, err); code != exitUsage {
				t.Fatalf("%q: code %d", args, code)
			}
			return
		}
		// Nothing is invented: what is not "--" or "help" was on the line.
		for _, arg := range arranged {
			if !slices.Contains(args, arg) && arg != "--" && arg != "help" {
				t.Fatalf("%q became %q", args, arranged)
			}
		}
		if again, err := arrange(app, arranged); err != nil || !slices.Equal(again, arranged) {
			t.Fatalf("%q became %q and then %q: %v", args, arranged, again, err)
		}
	})
}

func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{"name: a\nvoters: [a, b]\n", "a: &a [*a]", "? {}\n: 1", "<<: {name: b}", "- name", "name: !!binary aGk=", "---\n---\n", "\xff"} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "doyen.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		g := gathered{config: settings.Default(), source: map[string]string{}}
		for _, err := range g.readText(path, func() ([]byte, error) { return loadFile(path) }) {
			if _, ok := errors.AsType[*settings.Error](err); !ok {
				t.Fatalf("not a configuration error: %v", err)
			}
		}
	})
}
