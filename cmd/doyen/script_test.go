package main

import (
	testflag "flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets more tests run at once than there are processors, unless -parallel is given: the tests mostly
// wait for leases and processes.
func TestMain(m *testing.M) {
	if err := testflag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"doyen": main})
}

// TestScripts runs the scripts of testdata, where `doyen` is this very binary.
// Beyond testscript's own, they have these commands:
//
//	code N command...   runs it and demands this exit code; stdout and stderr are files then
//	agent SCENARIO      makes a fake agent of testdata/agents/SCENARIO.txtar answer at $DOYEN_SOCKET
//	follow SIGNAL N FILE command...
//	                    runs it until it has written N lines, sends it INT, TERM or HUP, and
//	                    demands exit code 0; FILE then holds its stdout and stderr
//	asked CALL          demands that this was the last call
//	body FILE CALL      demands that the file is the fake agent's answer to CALL, byte by byte
//	json KEY...         demands that stdout is one JSON object with these keys
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// A socket's path must be short, and the work directory's is not.
			dir, err := os.MkdirTemp("/tmp", "doyen")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(dir) })
			env.Setenv("DOYEN_SOCKET", filepath.Join(dir, "s"))
			env.Setenv("TZ", "UTC")
			// With the race detector, each process would wait for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=10")
			env.Values[fakeKey{}] = &fakeAgent{socket: filepath.Join(dir, "s")}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": codeCommand, "agent": agentScenario, "follow": followCommand,
			"asked": askedCommand, "body": bodyCommand, "json": jsonCommand,
		},
	})
}

// The help lists every command of this release, and no other.
func TestTheCommandsAreThoseOfTheContract(t *testing.T) {
	want := []string{"agent", "act", "leader", "is-leader", "status", "members", "elections", "campaigns", "word", "jobs", "watch", "history", "plan", "drill", "doctor", "debug",
		"run", "once", "cron", "resign", "transfer", "drain", "leave", "reload", "restart", "voters", "settings", "allow", "log-level", "keygen", "keys", "version", "completion"}
	var got []string
	for _, c := range commands() {
		got = append(got, c.name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("commands %v, want %v", got, want)
	}
}

func TestEveryCommandHasAScript(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, c := range commands() {
		if !strings.Contains(all.String(), "doyen "+c.name) {
			t.Errorf("no script calls doyen %s", c.name)
		}
	}
}
