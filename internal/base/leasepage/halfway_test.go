package leasepage

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// A writer may stop after any store. Readers still find the former lease at once.
func TestAWriterThatIsStoppedHalfwayBlocksNoReader(t *testing.T) {
	for done := range 4 {
		w, err := Create(t.TempDir(), "payments", 42)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(w.Path())
		if err != nil {
			t.Fatal(err)
		}
		until := alarm.Now() + int64(time.Minute)
		for term := range uint64(3) { // both places of the page hold an older value
			if err := w.Set(term+1, until); err != nil {
				t.Fatal(err)
			}
		}
		stores := 0
		w.put = func(word *uint64, value uint64) {
			if stores++; stores <= done {
				atomic.StoreUint64(word, value)
			}
		}
		if err := w.Set(9, until); err != nil {
			t.Fatal(err)
		}
		if l, ok := r.Check(); !ok || l.Term != 3 {
			t.Errorf("stopped after %d of 4 stores: readers find %+v, %t; want term 3", done, l, ok)
		}
	}
}
