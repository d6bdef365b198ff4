package client_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// held returns a page that holds a lease for an hour, and its writer.
func held(t testing.TB) (*client.Lease, *leasepage.Writer) {
	t.Helper()
	dir := t.TempDir()
	w, err := leasepage.Create(dir, "payments", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Set(7, alarm.Now()+int64(time.Hour)); err != nil {
		t.Fatal(err)
	}
	l, err := client.OpenLease(filepath.Join(dir, "payments"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(l.Close(), w.Close()) })
	return l, w
}

func TestALeaseIsCheckedOnItsPage(t *testing.T) {
	l, w := held(t)
	if token, remaining, ok := l.Check(); !ok || token != 7 || remaining <= 0 || remaining > time.Hour {
		t.Errorf("token %d, %s, %t", token, remaining, ok)
	}
	if err := w.Set(7, 0); err != nil {
		t.Fatal(err)
	}
	if token, remaining, ok := l.Check(); ok || l.Valid() || token != 0 || remaining != 0 {
		t.Errorf("after the end: token %d, %s, %t", token, remaining, ok)
	}
	if _, err := client.OpenLease(client.LeasePath(filepath.Join(t.TempDir(), "doyen.sock"), "payments")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no page: %v", err)
	}
}

func BenchmarkLeaseValid(b *testing.B) {
	l, _ := held(b)
	b.ReportAllocs()
	for b.Loop() {
		if !l.Valid() {
			b.Fatal("not valid")
		}
	}
}
