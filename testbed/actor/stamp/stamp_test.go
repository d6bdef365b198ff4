package stamp

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestWhatActedIsRead(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	began := Now()
	acted := make(chan error)
	go func() { acted <- Act(ctx, dir, Stamp{Term: 7, First: began}) }()
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		all, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && all[0].Last > began+int64(2*Every) {
			if s := all[0]; s.Term != 7 || s.PID != os.Getpid() || s.First != began || s.Last > Now() {
				t.Errorf("%+v", s)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing was stamped")
		}
	}
	cancel()
	if err := <-acted; err != nil {
		t.Error(err)
	}
	ended := Now()
	all, err := Read(dir)
	if err != nil || len(all) != 1 || all[0].Last > ended {
		t.Errorf("after the end: %+v, %v", all, err)
	}
}

func TestTheNewestStampIsTheEndOfAJobThatWasKilled(t *testing.T) {
	dir := t.TempDir()
	want := []Stamp{{Term: 3, First: 10, Last: 19, Key: "pay/1", Try: 1}, {Term: 4, First: 30, Key: "pay/2", Try: 2}}
	for i, s := range want {
		book, err := Open(dir, s)
		if err == nil && i == 0 {
			err = book.Stamp(19) // and it is killed
		} else if err == nil {
			err = book.End()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := book.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, unfinished+"1.2.3"), nil, 0o600); err != nil { // killed before its first stamp
		t.Fatal(err)
	}
	got, err := Read(dir)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	ended := got[1].Last
	if want[1].Last, want[1].Ended = ended, true; ended <= 30 || ended > Now() {
		t.Errorf("the last stamp is at %d", ended)
	}
	for i := range want {
		if want[i].PID = os.Getpid(); got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestADamagedStampIsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "12.3.4"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := Read(dir); err == nil || !strings.Contains(err.Error(), "12.3.4") {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was read")
	}
}
