package bench

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/doyen-election/doyen/testbed/hosts"
)

func TestWatchersOfARealAgentAreAllReached(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs real processes for some seconds")
	}
	dir, err := os.MkdirTemp("/tmp", "db")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Setenv("TMPDIR", dir)
	b := &bench{o: Options{Agents: 3, Algorithm: "bully", Profile: "local", Rounds: 1, Progress: t.Output()},
		program: hosts.Self{}, rng: rand.New(rand.NewPCG(1, 1))}
	took, kib, err := b.watched(t.Context(), 200, 2)
	if err != nil || len(took) < 4 {
		t.Errorf("changes %v, %v KiB: %v", took, kib, err)
	}
	t.Logf("ms until all had read: %.3g; %.3g KiB a watcher", took, kib)
}
