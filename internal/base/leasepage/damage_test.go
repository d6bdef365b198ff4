package leasepage_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// valid returns the bytes of a page with a lease.
func valid(t testing.TB) []byte {
	t.Helper()
	w, _ := page(t)
	set(t, w, 7, time.Hour)
	data, err := os.ReadFile(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// holds writes a page file, and reports whether a reader finds a lease in it.
func holds(t testing.TB, election string, data []byte) (bool, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), election)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := leasepage.Open(path)
	if err != nil {
		return false, err
	}
	defer r.Close()
	return r.Valid(), nil
}

// A copy of a page is valid: the file permissions keep other users from making one. But if any byte that
// matters is changed, the page holds no lease.
func TestADamagedPageHoldsNoLease(t *testing.T) {
	data := valid(t)
	if ok, err := holds(t, "payments", data); !ok || err != nil {
		t.Fatalf("the page itself: %t, %v", ok, err)
	}
	sequence := binary.NativeEndian.Uint64(data[128:])
	current := 160 + int(sequence%2)*32
	matters := func(i int) bool { return i < 136 || i >= current && i < current+24 }
	for i := range 256 {
		for _, bit := range []byte{1, 0x80} {
			data[i] ^= bit
			if ok, _ := holds(t, "payments", data); ok && matters(i) {
				t.Errorf("byte %d is changed, and the lease is valid", i)
			}
			data[i] ^= bit
		}
	}
	for _, n := range []int{0, 1, 127, 200, leasepage.Size - 1} {
		if ok, err := holds(t, "payments", data[:n]); ok || err == nil {
			t.Errorf("cut to %d bytes: %t, %v", n, ok, err)
		}
	}
}

func TestWhatIsNoPageIsRefusedWithTheReason(t *testing.T) {
	data := valid(t)
	change := func(at int, with ...byte) []byte {
		changed := append([]byte(nil), data...)
		copy(changed[at:], with)
		return changed
	}
	for want, c := range map[string]struct {
		election string
		data     []byte
	}{
		"another election":          {"default", data},
		"version 2, this program":   {"payments", change(8, 2)},
		"not a lease page":          {"payments", change(0, 'x')},
		"earlier boot of the host":  {"payments", change(80, data[80]+1)},
		"shorter than a page":       {"payments", data[:100]},
		"it is not a lease page":    {"payments", make([]byte, leasepage.Size)},
		"page of another election":  {"payments", change(40, 'x')},
		"the page of another elect": {strings.Repeat("p", 64), data},
	} {
		if _, err := holds(t, c.election, c.data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
}

func TestOnlyAFileItselfIsOpened(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, "payments")
	set(t, w, 1, time.Hour)
	link, pipe, folder := filepath.Join(dir, "link"), filepath.Join(dir, "pipe"), filepath.Join(dir, "folder")
	if err := errors.Join(os.Symlink(w.Path(), link), unix.Mkfifo(pipe, 0o600), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, pipe, folder, "/dev/null", filepath.Join(dir, "nothing")} {
		if r, err := leasepage.Open(path); err == nil {
			t.Errorf("%s was opened: valid %t", path, r.Valid())
		}
	}
}

// If the file shrinks, an access to the lost pages would end the process. Reader and writer must return an
// error instead.
func TestAPageThatShrinksEndsNobody(t *testing.T) {
	w, r := page(t)
	set(t, w, 1, time.Hour)
	if err := os.Truncate(w.Path(), 0); err != nil {
		t.Fatal(err)
	}
	if r.Valid() {
		t.Error("the lease is valid")
	}
	if err := w.Set(1, alarm.Now()+int64(time.Hour)); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("written: %v", err)
	}
	if err := errors.Join(w.Set(2, 0), w.Close()); err != nil {
		t.Errorf("a page that is gone: %v", err)
	}
	set(t, create(t, filepath.Dir(w.Path()), "payments"), 2, time.Hour)
	eventually(t, "followed", r.Valid)
}

func TestWhatIsWipedHoldsNoLeaseForWhoeverHasItMapped(t *testing.T) {
	w, r := page(t)
	set(t, w, 1, time.Hour)
	if !r.Valid() {
		t.Fatal("not valid before")
	}
	for range 2 {
		if err := leasepage.Wipe(w.Path()); err != nil || r.Valid() {
			t.Errorf("valid after: %v", err)
		}
	}
}

// Any bytes may be in a file. The reader must not panic, and finds a lease only if a second, plain
// implementation of the layout here finds one.
func FuzzPage(f *testing.F) {
	data := valid(f)
	f.Add(data)
	f.Add(data[:200])
	f.Add([]byte{})
	f.Add(make([]byte, leasepage.Size))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 0 && len(data) < leasepage.Size {
			data = append(data, make([]byte, leasepage.Size-len(data))...)
		}
		got, _ := holds(t, "payments", data)
		if got && !plainly(data) {
			t.Errorf("a lease in %x", data[:256])
		}
	})
}

func plainly(data []byte) bool {
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(data[at:]) }
	sequence := word(128)
	at := 160 + int(sequence%2)*32
	sum := uint64(0xcbf29ce484222325)
	for i := 0; i < 128; i += 8 {
		sum = (sum ^ word(i)) * 0x100000001b3
	}
	for _, w := range []uint64{sequence, word(at), word(at + 8)} {
		sum = (sum ^ w) * 0x100000001b3
	}
	return string(data[:8]) == "doyenlp\n" && binary.NativeEndian.Uint32(data[8:]) == 1 &&
		string(data[16:25]) == "payments\x00" && sequence != 0 && word(at+16) == sum && int64(word(at+8)) > alarm.Now()-int64(time.Minute)
}

// Adopt checks a page as thoroughly as a reader does.
func TestOnlyAWholePageOfTheSameLineageIsAdopted(t *testing.T) {
	data := valid(t)
	lineage := binary.NativeEndian.Uint64(data[96:])
	for what, edit := range map[string]func([]byte) []byte{
		"cut short":       func(b []byte) []byte { return b[:leasepage.Size-1] },
		"never written":   func(b []byte) []byte { clear(b[128:136]); return b },
		"a damaged value": func(b []byte) []byte { b[160]++; b[192]++; return b },
		"another lineage": func(b []byte) []byte { b[96]++; return b },
		"another boot":    func(b []byte) []byte { b[80]++; return b },
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "payments"), edit(append([]byte(nil), data...)), 0o600); err != nil {
			t.Fatal(err)
		}
		if w, err := leasepage.Adopt(dir, "payments", lineage); err == nil {
			t.Errorf("%s: adopted", what)
			_ = w.Close()
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "payments"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := leasepage.Adopt(dir, "payments", lineage)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
