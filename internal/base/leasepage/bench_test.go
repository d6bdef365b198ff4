package leasepage_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

func BenchmarkValid(b *testing.B) {
	w, r := page(b)
	set(b, w, 7, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if !r.Valid() {
			b.Fatal("the lease is not valid")
		}
	}
}

func BenchmarkSet(b *testing.B) {
	w, _ := page(b)
	until := alarm.Now() + int64(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		until++
		if err := w.Set(7, until); err != nil {
			b.Fatal(err)
		}
	}
}
