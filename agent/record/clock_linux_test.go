package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/testbed/timens"
)

// TestK3AClockIsNamedByItsValue: when a time namespace has ended, the kernel gives its inode to the next one. With a
// record of the former namespace's clock, leases would end too late in the new one.
func TestK3AClockIsNamedByItsValue(t *testing.T) {
	timens.Run(t, func(t *testing.T) {
		f, err := os.Create(filepath.Join(t.TempDir(), "record"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		here, err := headerOf(f, "a")
		if err != nil || !strings.Contains(here.Offsets, "boottime 86400 0") {
			t.Fatalf("%+v, %v; want the offset of this namespace", here, err)
		}
		for name, offsets := range map[string]string{
			"the host's":                         "",
			"of a namespace with the same inode": strings.Replace(here.Offsets, "86400", "3600", 1),
		} {
			former := here
			former.Offsets = offsets
			if err := former.judge(here); err != errOtherTime {
				t.Errorf("goes on from a record of a clock %s: %v", name, err)
			}
		}
		if err := here.judge(here); err != nil {
			t.Errorf("does not go on under its own clock: %v", err)
		}
	})
}

func TestTheHostsClockHasNoOffset(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "record"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if h, err := headerOf(f, "a"); err != nil || h.Offsets != "" {
		t.Errorf("%+v, %v; want no offset, as in records of 0.4.0", h, err)
	}
}
