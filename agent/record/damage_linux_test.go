package record

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/golden"
)

// aFile is the content of a record's file with an entry of each kind.
func aFile(t testing.TB) []byte {
	t.Helper()
	s := state{
		header: header{Lineage: 0xa11ce, JoinedAt: 7, Peer: "peer-a", Boot: [16]byte{1, 2, 3}, TimeNS: 4, Device: 5, Inode: 6},
		life:   life{Number: 3, Lease: time.Second, Ahead: 6},
	}
	file := binary.LittleEndian.AppendUint32([]byte(magic), Format)
	for _, it := range []*item{
		s.whole(), {Terms: &terms{2, 3}, Rows: []election.Authority{defaults, payments}},
		{Actors: map[election.Name]Actors{"payments": acting}}, {Voters: &places},
	} {
		var err error
		if file, err = encode(file, it); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// If any byte is changed, the record is read as it was before, or is refused (K7).
func TestADamagedRecordIsReadAsItWasOrNotAtAll(t *testing.T) {
	file := aFile(t)
	if _, end, err := replay(file); err != nil || end != len(file) {
		t.Fatalf("read until %d of %d, %v", end, len(file), err)
	}
	for at := range file {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			file[at] ^= mask
			if _, _, err := replay(file); err == nil {
				t.Errorf("byte %d: read with mask %x", at, mask)
			}
			file[at] ^= mask
		}
	}
}

// A life may die at any byte of a write. The next life has all earlier writes, and nothing of that write.
func TestAnItemIsThereAsAWholeOrNotAtAll(t *testing.T) {
	dir := inTmpfs(t)
	c := config(dir, 7)
	r, _ := begin(t, c)
	filled(t, r)
	before := r.state.past()
	from := r.end
	fresh := election.Authority{Election: "fresh", Highest: 1}
	newer := defaults
	newer.Until--
	r.Write(&election.LifeRecord{Retired: 5, Spent: 6, Rows: []election.Authority{newer, fresh}})
	die(t, r)
	text, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	for n := int(from); n < len(text); n++ {
		f, err := os.OpenFile(c.Path, os.O_RDWR, 0)
		if err == nil {
			_, err = f.WriteAt(text[:n], 0)
			err = errors.Join(err, f.Truncate(int64(n)), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		next, past := begin(t, c)
		if !reflect.DeepEqual(past, before) {
			t.Fatalf("at %d of %d: %+v", n-int(from), len(text)-int(from), past)
		}
		filled(t, next) // the new life writes after the items that are left
		die(t, next)
		if again, past := begin(t, c); past.Life != 2 || len(past.Rows) != 2 {
			t.Fatalf("at %d: its next life finds %+v", n, past)
		} else {
			die(t, again)
		}
	}
}

// The next version must read, or refuse, the records of this one.
func TestTheFormatOfTheRecordIsWhatItWas(t *testing.T) {
	golden.Check(t, "record.golden", hex.Dump(aFile(t)))
}

// No content of a file makes replay panic. A damaged record is read as it was, or refused.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 24, 1})
	f.Add([]byte{0, 0, 1, 16, 7, 255})
	f.Fuzz(func(t *testing.T, edits []byte) {
		file := aFile(t)
		want, _, err := replay(file)
		if err != nil {
			t.Fatal(err)
		}
		_, _, _ = replay(append(file[:headSize:headSize], edits...)) // must not panic
		if entry := append(make([]byte, entryLen), edits...); len(edits) > 0 {
			seal(entry)
			_, _, _ = replay(append(file[:len(file):len(file)], entry...))
		}
		for ; len(edits) >= 3; edits = edits[3:] {
			file[(int(edits[0])<<8|int(edits[1]))%len(file)] ^= edits[2]
		}
		if got, _, err := replay(file); err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("read as %+v", got)
		}
	})
}
