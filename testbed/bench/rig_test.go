package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// TestMain lets this very binary be the agents.
func TestMain(m *testing.M) {
	if code, served := hosts.ServeAgent(os.Args, os.Stderr); served {
		os.Exit(code)
	}
	if code, served := ServeProgram(os.Args, os.Stderr); served {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// small is a bench of three agents, which are this very binary. A lease of the local
// profile would not always outlast what else a busy machine does.
func small(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs real processes for some seconds: not with -short; CI runs it")
	}
	dir, err := os.MkdirTemp("/tmp", "db") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return &bench{o: Options{Agents: 3, Algorithm: "bully", Profile: "lan", Rounds: 1, Progress: t.Output()},
		program: hosts.Self{}, rng: rand.New(rand.NewPCG(1, 1))}
}

func TestAProgramIsReplaced(t *testing.T) {
	stamps := t.TempDir()
	b := small(t)
	campaign := func(h *hosts.Host, dir string) (*exec.Cmd, error) { return campaigning(h.Config().Socket, dir) }
	missed := false
	missedOnce := func(ctx context.Context, t *troupe, host string, s stamp.Stamp) error {
		if !missed {
			missed = true
			return fmt.Errorf("resign: %w", &client.APIError{Status: http.StatusConflict, Code: api.CodeNotLeader})
		}
		return killActor(ctx, t, host, s)
	}
	for name, hit := range map[string]blow{"kill": missedOnce, "resign": resignProgram, "transfer": transferProgram} {
		took, overlaps, err := b.replacements(t.Context(), name, 1, stamps, campaign, hit)
		if err != nil || len(took) != 1 || took[0] <= 0 || overlaps[0] != 0 {
			t.Errorf("%s: took %v, two at once for %v: %v", name, took, overlaps, err)
		}
	}
}

func TestRoundsWithRealProcesses(t *testing.T) {
	b := small(t)
	cold, whole, err := b.coldStarts(t.Context(), 1)
	if err != nil || len(cold) != 1 || cold[0] <= 0 || whole[0] <= cold[0] {
		t.Errorf("cold starts %v, of all %v: %v", cold, whole, err)
	}
	for name, f := range map[string]fault{"resign": resigned(), "SIGTERM": terminated()} {
		took, err := b.takeovers(t.Context(), "lan", name, 1, f)
		if err != nil || len(took) != 1 || took[0] <= 0 {
			t.Errorf("%s: takeovers %v: %v", name, took, err)
		}
	}
	lasted, err := b.overlaps(t.Context(), 3) // one of each kind
	if err != nil || !slices.Equal(append(lasted, b.elsewhere...), make([]float64, 5)) {
		t.Errorf("two leaders at once for %v and %v ms: %v", lasted, b.elsewhere, err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%d files were left behind", len(left))
	}
}
