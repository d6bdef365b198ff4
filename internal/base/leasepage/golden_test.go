package leasepage

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/doyen-election/doyen/testbed/golden"
)

// Programs in other languages read the page too (docs/api.md), and later versions of the client must be able to
// read it.
func TestTheLayoutOfThePageIsWhatItWas(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("needs a little-endian host, as the golden page was written on one; CI runs it")
	}
	host, err := parseBoot("00112233-4455-6677-8899-aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "pay"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &Writer{path: f.Name(), put: atomic.StoreUint64}
	if err := w.begin(f, header{election: "pay", host: host, agent: 0xb007}); err != nil {
		t.Fatal(err)
	}
	for _, v := range []value{{7, 1_000_000_000}, {8, 2_000_000_000}} {
		if err := w.Set(v.term, v.deadline); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range page[256:] {
		if b != 0 {
			t.Fatal("there is more in the page than is compared here")
		}
	}
	golden.Check(t, "page.golden", hex.Dump(page[:256]))
	if err := judge([headerSize]byte(page), "pay", host); err != nil || len(page) != Size {
		t.Errorf("%d bytes, %v", len(page), err)
	}
}
