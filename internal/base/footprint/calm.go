package footprint

import (
	"context"
	"runtime/metrics"
	"time"
)

// The agent's start counts as ended when, for calmFor, the agent has been on time and made little garbage. This
// is checked every calmTick. After calmLatest, the start counts as ended in any case.
const (
	calmFor    = 2 * time.Second
	calmTick   = 100 * time.Millisecond
	calmLatest = time.Minute
	// onTime is how late a timer may ring. Even where many agents start at once, each is rarely later: a process
	// that has slept gets a processor soon.
	onTime = 20 * time.Millisecond
	// littleGarbage, in bytes, is more than an idle agent makes in calmFor.
	littleGarbage = 2 << 20
)

// WhenCalm calls f once the start has ended, unless ctx ends before.
func WhenCalm(ctx context.Context, f func()) { whenCalm(ctx, allocated, time.Since, f) }

func whenCalm(ctx context.Context, allocated func() uint64, since func(due time.Time) time.Duration, f func()) {
	began := time.Now()
	for rests, made := began, allocated(); ; {
		due := time.Now().Add(calmTick)
		select {
		case <-time.After(calmTick):
		case <-ctx.Done():
			return
		}
		now := time.Now()
		if since(due) > onTime || allocated()-made > littleGarbage {
			rests, made = now, allocated()
		}
		if now.Sub(rests) >= calmFor || now.Sub(began) >= calmLatest {
			f()
			return
		}
	}
}

// allocated returns how many bytes the process has allocated since its start.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
