package jobsim

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Play plays the world of a seed. If trace is set, it gets what happens. The error is the promise that was
// broken.
func Play(seed uint64, trace *strings.Builder) (Counts, error) {
	w, err := newWorld(seed, trace)
	if err != nil {
		return Counts{}, err
	}
	w.play()
	w.judge.counts.Terms = int(w.term)
	if w.judge.broken != "" {
		return w.judge.counts, fmt.Errorf("seed %d: %s", seed, w.judge.broken)
	}
	return w.judge.counts, nil
}

// add adds the counts of another world.
func (c *Counts) add(other Counts) {
	sum, more := reflect.ValueOf(c).Elem(), reflect.ValueOf(other)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
}

// Sweep plays the worlds of a seed and of the next ones, until they have had enough occurrences. It returns what
// happened. The first broken promise ends the sweep: the error has the end of the world's story, and the
// command that replays the world.
func Sweep(ctx context.Context, from uint64, occurrences int) (Counts, error) {
	var sum Counts
	for seed := from; sum.Occurrences < occurrences && ctx.Err() == nil; seed++ {
		c, err := Play(seed, nil)
		sum.add(c)
		if err != nil {
			return sum, fmt.Errorf("%w\n%sreplay: go run ./cmd/testbed simulate --jobs --seed %d", err, Story(seed, 25), seed)
		}
	}
	return sum, nil
}

// Story returns the last lines of what happens in the world of a seed.
func Story(seed uint64, lines int) string {
	var trace strings.Builder
	_, _ = Play(seed, &trace) // the caller has its error
	all := strings.SplitAfter(strings.TrimSuffix(trace.String(), "\n"), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "") + "\n"
}

// Print writes the counts, one a line.
func (c Counts) Print(out io.Writer) {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		fmt.Fprintf(out, "%14s %d\n", v.Type().Field(i).Name, v.Field(i).Int())
	}
}
