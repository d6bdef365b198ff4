package simulation

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// SweepOptions choose which seeds to play, and for how long.
type SweepOptions struct {
	Options                   // of every run, except for the seed
	From, Seeds uint64        // so many seeds from From on; 0: until ctx ends or For has passed
	For         time.Duration // 0: no limit
	Cores       int
	// Progress is called at the interval Every with what was played so far, and once at the
	// end. Calls never overlap.
	Progress func(Progress)
	Every    time.Duration
}

type Progress struct {
	Seeds   uint64 // how many were played
	Next    uint64 // the next seed
	Elapsed time.Duration
	Stats
}

// Rate returns the steps per second of real time, on all cores together.
func (p Progress) Rate() float64 { return float64(p.Steps) / max(p.Elapsed.Seconds(), 1e-9) }

// Sweep plays seeds on several cores until all are played, For has passed, ctx ends, or a run
// violates a rule. It returns the violation with the lowest seed; nil if there is none. It
// skips no seed below the highest that it played.
func Sweep(ctx context.Context, o SweepOptions) (Progress, *Violation) {
	// Runs are short, and what they allocate lives no longer.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.For > 0 {
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	s := &sweep{SweepOptions: o, began: time.Now(), shown: time.Now()}
	var wg sync.WaitGroup
	for range max(1, o.Cores) {
		wg.Go(func() { s.play(ctx, cancel) })
	}
	wg.Wait()
	p := s.progress()
	if o.Progress != nil {
		o.Progress(p)
	}
	return p, s.worst
}

type sweep struct {
	SweepOptions
	began time.Time
	taken atomic.Uint64 // how many seeds are taken

	mu    sync.Mutex
	shown time.Time // when progress was reported last
	total Stats
	done  uint64
	worst *Violation
}

func (s *sweep) play(ctx context.Context, cancel func()) {
	for ctx.Err() == nil {
		n := s.taken.Add(1) - 1
		if s.Seeds > 0 && n >= s.Seeds {
			return
		}
		o := s.Options
		o.Seed = s.From + n
		r := Run(o)
		s.mu.Lock()
		s.done++
		s.total.Add(r.Stats)
		if v := r.Violation; v != nil {
			if s.worst == nil || v.Seed < s.worst.Seed {
				s.worst = v
			}
			cancel()
		}
		if s.Progress != nil && s.Every > 0 && time.Since(s.shown) >= s.Every {
			s.shown = time.Now()
			s.Progress(s.progress())
		}
		s.mu.Unlock()
	}
}

func (s *sweep) progress() Progress {
	p := Progress{Seeds: s.done, Next: s.From + s.done, Elapsed: time.Since(s.began)}
	p.Stats.Add(s.total)
	return p
}

// gcPercent lets the heap grow: a run keeps almost nothing for long.
const gcPercent = 1600
