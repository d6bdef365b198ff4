package stamp

import (
	"reflect"
	"testing"
)

func TestTheNewestStampIsTheEndOfAJobThatWasKilled(t *testing.T) {
	dir := t.TempDir()
	if all, err := Notes(dir); err != nil || len(all) != 0 {
		t.Errorf("%v, %v before the first note", all, err)
	}
	killed := Note{Key: "pay/1", Stamp: Stamp{Term: 3, PID: 7, First: 10, Last: 10}, Try: 1}
	whole := Note{Key: "pay/2", Stamp: Stamp{Term: 4, PID: 8, First: 30, Last: 30}, Try: 2}
	for _, n := range []Note{killed, whole, {Key: "pay/2", Stamp: Stamp{Term: 4, PID: 8, First: 30, Last: 44}, Try: 2, Ended: true}} {
		if err := n.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	book, err := Open(dir, 5, 20) // of this process, whose ID the note gets
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	all, err := Read(dir)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	mine := Note{Key: "pay/3", Stamp: Stamp{Term: 5, PID: all[0].PID, First: 20, Last: 20}, Try: 1}
	if err := mine.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := book.Stamp(29); err != nil {
		t.Fatal(err)
	}
	mine.Last = 29
	whole.Last, whole.Ended = 44, true
	got, err := Notes(dir)
	if want := []Note{killed, whole, mine}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
