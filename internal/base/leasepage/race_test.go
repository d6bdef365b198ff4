package leasepage_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// Many readers check while a writer runs at full speed. Each must see only a term with its own deadline, and
// terms that never fall. None may see a lease that a Set has ended before.
func TestReadersSeeNoHalfAndNoStaleValue(t *testing.T) {
	const terms, callers = 20_000, 4
	w, r := page(t)
	base := alarm.Now() + int64(time.Hour)
	var done atomic.Bool
	var ended atomic.Uint64 // the highest term that was withdrawn
	var seen atomic.Uint64
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for last := uint64(0); !done.Load(); {
				over := ended.Load()
				l, ok := r.Check()
				if !ok {
					continue
				}
				seen.Add(1)
				if l.Deadline != base+int64(l.Term) || l.Term < last || l.Term <= over {
					t.Errorf("term %d until base%+d, after term %d, when %d had ended", l.Term, l.Deadline-base, last, over)
					return
				}
				last = l.Term
			}
		})
	}
	for term := uint64(1); term <= terms || seen.Load() < 1000; term++ {
		if err := w.Set(term, base+int64(term)); err != nil {
			t.Fatal(err)
		}
		if term%3 == 0 {
			if err := w.Set(term, 0); err != nil {
				t.Fatal(err)
			}
			ended.Store(term)
		}
		if t.Failed() {
			break
		}
	}
	done.Store(true)
	running.Wait()
}
