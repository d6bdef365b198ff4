package scenario_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/scenario"
)

var (
	chosen = flag.String("scenarios", "short", "which scripts to play: short, all, or names with commas between them")
	rounds = flag.Int("rounds", 1, "how often each script is played")
	long   = flag.Bool("long", false, "let scripts last as long as their names promise")
	seed   = flag.Uint64("seed", 0, "what the network's random faults follow from; 0 is a random one")
)

// folder has the scripts.
const folder = "../scenarios"

// short are the scripts that `go test ./...` plays. They need no rights beyond those of an ordinary
// user.
var short = []string{"leader-killed", "leader-frozen-and-thawed"}

// TestMain makes this executable serve as the scripts' programs.
func TestMain(m *testing.M) {
	if code, served := actor.Serve(os.Args, os.Stdout, os.Stderr); served {
		os.Exit(code)
	}
	code := m.Run()
	if product.dir != "" {
		os.RemoveAll(product.dir)
	}
	os.Exit(code)
}

// product is the product's binary, built once for all tests.
var product struct {
	sync.Mutex
	dir    string
	binary hosts.Binary
}

func build(t *testing.T) hosts.Binary {
	t.Helper()
	product.Lock()
	defer product.Unlock()
	if product.dir != "" {
		return product.binary
	}
	dir, err := os.MkdirTemp("", "doyen-scenario-product-")
	if err != nil {
		t.Fatal(err)
	}
	path, err := hosts.Build(t.Context(), dir, hosts.Product)
	if err != nil {
		os.RemoveAll(dir)
		t.Fatal(err)
	}
	product.dir, product.binary = dir, hosts.Binary{Path: path}
	return product.binary
}

func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", folder, err)
	}
	return files
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".txtar") }

func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts real processes")
	}
	files := scripts(t)
	if *chosen != "all" {
		names := strings.Split(*chosen, ",")
		if *chosen == "short" {
			names = short
		}
		files = slices.DeleteFunc(files, func(file string) bool { return !slices.Contains(names, nameOf(file)) })
		if len(files) != len(names) {
			t.Fatalf("-scenarios=%s: %d of them are in %s", *chosen, len(files), folder)
		}
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("play again with -seed=%d", *seed)
	o := scenario.Options{Binary: build(t), Long: *long, Seed: *seed, Verbose: testing.Verbose()}
	for _, file := range files {
		for range *rounds {
			t.Run(nameOf(file), func(t *testing.T) { play(t, o, file) })
		}
	}
}

func play(t *testing.T, o scenario.Options, file string) scenario.Result {
	t.Helper()
	o.Undecided = func(r scenario.Result) { t.Logf("undecided, since %s; played again:\n%s", r.Excuse, r.Log) }
	r, err := scenario.Run(context.WithoutCancel(t.Context()), o, file)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Passed {
		t.Errorf("%s\n%s", r.Excuse, r.Log)
		return r
	}
	t.Logf("%.1f s\n%s", r.Took.Seconds(), r.Log)
	return r
}
