package simulation

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestASweepPlaysItsSeedsAndEnds(t *testing.T) {
	p, v := Sweep(t.Context(), SweepOptions{From: 5, Seeds: 6, Cores: 3})
	if v != nil || p.Seeds != 6 || p.Next != 11 || p.Steps == 0 {
		t.Errorf("%v\n%+v", v, p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, v = Sweep(ctx, SweepOptions{Cores: 2}); v != nil || p.Seeds != 0 {
		t.Errorf("cancelled: %v, %+v", v, p)
	}
	if p, v = Sweep(t.Context(), SweepOptions{From: 1, For: time.Nanosecond, Cores: 1}); v != nil || p.Seeds > 1 {
		t.Errorf("out of time: %v, %+v", v, p)
	}
}

func TestACampaignTellsWhatBrokeAndDrawsIt(t *testing.T) {
	t.Parallel()
	o, _ := straying(t, 1)
	page := filepath.Join(t.TempDir(), "seed.html")
	var out, log strings.Builder
	c := Campaign{SweepOptions: SweepOptions{Options: o, From: o.Seed, Seeds: 1, Cores: 1, Log: &log}, HTML: page, Tries: 60, Out: &out}
	if err := c.Run(t.Context()); !errors.Is(err, ErrViolated) {
		t.Fatalf("got %v\n%s", err, &out)
	}
	for _, want := range []string{"violates G1", "shrunk in ", "replay: go run ./cmd/testbed simulate --seed ", "LEADS ", "drawn in " + page} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing of %q in\n%s", want, &out)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "violates G1") {
		t.Errorf("the page: %v\n%.500s", err, text)
	}
	if !strings.Contains(log.String(), "1 seeds") {
		t.Errorf("no progress in\n%s", &log)
	}
}

func TestACampaignSaysThatNothingWasShrunk(t *testing.T) {
	t.Parallel()
	o, _ := straying(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out strings.Builder
	c := Campaign{SweepOptions: SweepOptions{Options: o, Cores: 1, Log: io.Discard}, Single: true, Tries: 60, Out: &out}
	if err := c.Run(ctx); !errors.Is(err, ErrViolated) {
		t.Fatalf("got %v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "\nnot shrunk: 0 tries found nothing to leave out of its ") ||
		!strings.Contains(out.String(), "\nreplay: "+o.Command()+"\n") || strings.Contains(out.String(), "to 0") {
		t.Errorf("want that it was not shrunk, and how to replay the whole, in\n%s", &out)
	}
}

func TestACampaignOfOneSeedDrawsItToo(t *testing.T) {
	page := filepath.Join(t.TempDir(), "seed.html")
	var out strings.Builder
	c := Campaign{SweepOptions: SweepOptions{Options: Options{Seed: 2}, Log: &out}, Single: true, HTML: page, Out: &out}
	if err := c.Run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "<svg") || !strings.Contains(out.String(), "no promise was broken") {
		t.Errorf("%v\n%s", err, &out)
	}
	c.HTML = filepath.Join(page, "below", "a", "file")
	if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "draw the run") {
		t.Errorf("an unwritable page: %v", err)
	}
}

// TestRecordingChangesNothing shows that a run with a History is the same as one without.
func TestRecordingChangesNothing(t *testing.T) {
	for s := uint64(1); s <= 5; s++ {
		plain, recorded := Run(Options{Seed: s}), Run(Options{Seed: s, Record: true})
		if !reflect.DeepEqual(plain.Stats, recorded.Stats) {
			t.Errorf("seed %d: %+v\n%+v", s, plain.Stats, recorded.Stats)
		}
		if len(recorded.History.Story(50)) != 51 {
			t.Errorf("seed %d: a story of %d lines", s, len(recorded.History.Story(50)))
		}
	}
}

func TestFootprintCountsWhatAnElectorKeeps(t *testing.T) {
	type node struct {
		next  *node
		words map[string][]int
		any   any
	}
	n := &node{words: map[string][]int{"a": make([]int, 3), "b": nil}, any: []string{"x", "y"}}
	n.next = n
	if got := footprint(reflect.ValueOf(n), map[uintptr]bool{}); got != 2+3+2 {
		t.Errorf("got %d elements, want 7", got)
	}
}
