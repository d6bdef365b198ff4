package loop

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
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

// asked is a core that calls look each time before readers are shown a new status.
type asked struct {
	*rig
	look func()
}

func (a asked) Status(now election.Instant) *elector.Status {
	a.look()
	return a.rig.Status(now)
}

// K1: the record is written before readers see an outcome, and before messages are sent.
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
	r.loop.Record = kept
	r.loop.Core = asked{r, func() {
		if r.got(election.Tick{}) && !stepped.Swap(true) && !onRecord() {
			t.Error("readers were shown an outcome that is not on record")
		}
	}}
	r.loop.Network = sendSpy{r, func() { sent <- onRecord() }}
	r.start(t)
	defer r.cancel()
	if !<-sent {
		t.Error("a message left before the record was written")
	}
	if !stepped.Load() {
		t.Error("readers were shown nothing")
	}
}

// The removal of a record is a warning: the next restart would cost a lease. The warning ends when the record is back.
func TestARecordThatIsRemovedIsNoticed(t *testing.T) {
	path := filepath.Join(inTmpfs(t), "a.record")
	kept, _, err := record.Open(record.Config{Path: path, Peer: me, Run: 1, Born: 1, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	r := newRig(t, nil)
	r.loop.Record = kept
	var now election.Instant
	r.loop.Clock = func() election.Instant { return now }
	warns := func(after time.Duration) bool {
		now = now.Add(after)
		r.loop.publish(now)
		return slices.ContainsFunc(r.loop.picture.Load().Warnings, func(w api.Warning) bool { return w.Code == warnNoRecord })
	}
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if warns(0) || warns(time.Minute) {
		t.Error("a record that is there is missed")
	}
	move(path, path+".away")
	if warns(time.Minute - 1) {
		t.Error("it was looked for more often than is worth while")
	}
	if !warns(1) || !warns(time.Minute) {
		t.Error("a record that is gone is not missed")
	}
	now = now.Add(lease) // the warning lasts long enough to be logged
	if r.loop.publish(now); strings.Count(r.log.String(), "was removed or replaced") != 1 {
		t.Errorf("the log:\n%s", &r.log)
	}
	move(path+".away", path)
	if warns(time.Minute) {
		t.Error("a record that is back is missed")
	}
	if err := os.WriteFile(path+".other", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	move(path+".other", path)
	if !warns(time.Minute) {
		t.Error("a record that was replaced is not missed")
	}
	if kept.Kept() {
		t.Error("it is taken for the record still")
	}
}
