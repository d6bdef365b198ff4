package live_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/keeper"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/live"
)

// TestMain builds the agents, and checks that nothing is left behind.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("/tmp", "dl")
	if err == nil {
		product.Path, err = hosts.Build(context.Background(), dir, hosts.Product)
	}
	if err != nil {
		panic(err)
	}
	os.Setenv("TMPDIR", dir)
	code := m.Run()
	if left, _ := os.ReadDir(dir); len(left) > 1 {
		fmt.Println("FAIL: left behind:", left)
		code = 1
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// product is the executable of the agents.
var product hosts.Binary

// options are for three agents that take over from each other in about a second, if the machine's
// disk writes in time.
func options(out *strings.Builder) live.Options {
	return live.Options{ // a lease of the local profile could expire while a busy machine does other work
		Hosts: hosts.Config{Agents: 3, Algorithm: "bully", Profile: "lan", Quorum: true, Program: product},
		For:   8 * time.Second, Stdout: out, Getenv: func(string) string { return "" },
	}
}

func TestARunShowsATakeoverAndEndsAgreed(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs real processes for some seconds: not with -short; CI runs it")
	}
	t.Parallel()
	var out strings.Builder
	o := options(&out)
	o.Hosts.Adjust = func(_ int, a *settings.Config) { a.Keeper = keeper.Available }
	if err := live.Run(t.Context(), o); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`(?m)^  alpha .*/alpha/sock$`,
		`all 3 agree: \w+ leads, term \d+, .* after the last one was started`,
		`kill -9 the agent of (\w+), the leader`,
		`(\w+) leads( on)?, term \d+, .* after kill -9 of the agent of (\w+)`,
		`lose the host (\w+), the leader`,
		`(\w+) leads, term \d+, .* after the loss of (\w+)`,
		`start \w+`,
		`(?s)after the loss of .* all \d agree`, // the machine's speed decides which agents are back by then
		`(?m)^takeovers: [12]: `,
		`(?m)^two leaders at once: 0 ms$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("nothing matches %s", want)
		}
	}
	if t.Failed() {
		t.Logf("it said:\n%s", &out)
	}
}

func TestARunWithoutAMajorityAtItsEndFails(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs real processes for some seconds: not with -short; CI runs it")
	}
	t.Parallel()
	var out strings.Builder
	o := options(&out)
	o.For, o.Hosts.Program = time.Second, failing{except: "alpha"}
	err := live.Run(t.Context(), o)
	if err == nil {
		t.Fatalf("it ended well:\n%s", &out)
	}
	for _, want := range []string{"do not agree at the end", "names -", "not all that was to happen"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v\n%s", want, err, &out)
		}
	}
}

// failing starts agents of which all but one end at once.
type failing struct{ except string }

func (f failing) Command(c settings.Config, dir string) (*exec.Cmd, error) {
	if c.Name == f.except {
		return product.Command(c, dir)
	}
	return exec.Command("sh", "-c", "echo the disk is full >&2; exit 78"), nil
}

func TestARunWhoseAgentsEndByThemselvesSaysWhy(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for an agreement that does not come")
	}
	var out strings.Builder
	o := options(&out)
	o.For, o.Hosts.Program = time.Millisecond, failing{}
	err := live.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "alpha ended by itself, exit status 78: the disk is full") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestAnInterruptedRunFails(t *testing.T) {
	var out strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := live.Run(ctx, options(&out))
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v", err)
	}
}

func TestCheckRefusesWhatCannotBeRun(t *testing.T) {
	for want, change := range map[string]func(*live.Options){
		"--for":    func(o *live.Options) { o.For = -1 },
		"--agents": func(o *live.Options) { o.Hosts.Agents = 0 },
	} {
		var out strings.Builder
		o := options(&out)
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
