package stamp

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestWhatActedIsRead(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	began := Now()
	acted := make(chan error)
	go func() { acted <- Act(ctx, dir, 7, began) }()
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

func TestADamagedStampIsNamed(t *testing.T) {
	for name, text := range map[string]string{"12.3": "short", "x.3": "0123456789abcdef", "3.x": "0123456789abcdef"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := Read(dir); err == nil {
			t.Errorf("%s: %+v", name, all)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was read")
	}
}
