package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/doyen-election/doyen/agent/record"
)

func TestTheDirectoryOfTheRecordIsChecked(t *testing.T) {
	d := patient(t)
	d.config.RecordDir = "/proc/self"
	expect(t, d.checkRecord(t.Context()), Warning, "/proc/self is not in memory (tmpfs)")
	d.config.RecordDir = "/proc/self/none/yet"
	expect(t, d.checkRecord(t.Context()), Warning, "/proc/self is not in memory (tmpfs)")
	dir, err := os.MkdirTemp("/dev/shm", "doyen")
	if err != nil || record.InMemory(dir) != nil {
		t.Skip("needs a tmpfs at /dev/shm, which CI has")
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d.config.RecordDir = filepath.Join(dir, "yet")
	expect(t, d.checkRecord(t.Context()), OK, "goes on leading")
	d.config.RecordDir = dir
	expect(t, d.checkRecord(t.Context()), OK, "goes on leading")
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	expect(t, d.checkRecord(t.Context()), Warning, "may use it")
}
