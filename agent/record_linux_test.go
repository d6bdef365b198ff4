package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// inTmpfs returns a new directory in memory, where records may be.
func inTmpfs(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "agent")
	if err != nil {
		t.Skipf("a record needs a tmpfs at /dev/shm, which CI has: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// asked is a core that looks at the record's file whenever readers are about to be shown its
// status.
type asked struct {
	*rig
	look func()
}

func (a asked) Status(now election.Instant) *elector.Status {
	a.look()
	return a.rig.Status(now)
}

// K1: what readers are shown, and what leaves, is on record before.
func TestARecordIsWrittenBeforeAnythingOfAnOutputShows(t *testing.T) {
	path := filepath.Join(inTmpfs(t), "a.record")
	kept, _, err := record.Open(record.Config{Path: path, Peer: me, Run: 1, Born: 1, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	onRecord := func() bool {
		file, err := os.ReadFile(path)
		return err == nil && bytes.Contains(file, []byte("payments"))
	}
	r := newRig(t, nil)
	r.answer = once[election.Tick](election.Output{
		Record: &election.LifeRecord{Rows: []election.Authority{{Election: "payments", Highest: 3, Term: 3, Until: 9}}},
		Send:   []election.Envelope{{To: "b", Message: election.Release{}}}, WakeAt: election.Never,
	})
	var stepped atomic.Bool
	sent := make(chan bool, 1)
	r.loop.record = kept
	r.loop.core = asked{r, func() {
		if r.got(election.Tick{}) && !stepped.Swap(true) && !onRecord() {
			t.Error("readers were shown an outcome that is not on record")
		}
	}}
	r.loop.network = sendSpy{r, func() { sent <- onRecord() }}
	r.start(t)
	defer r.cancel()
	if !<-sent {
		t.Error("a message left before the record was written")
	}
	if !stepped.Load() {
		t.Error("readers were shown nothing")
	}
}
