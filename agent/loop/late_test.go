package loop

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// lateBy returns the lateness that the elector was notified of.
func (r *rig) lateBy() (all []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.inputs {
		if late, ok := in.(election.Late); ok {
			all = append(all, late.By)
		}
	}
	return all
}

// The loop reports by how much its timer or a write is late, once, if that is more than an eighth of the lease.
func TestTheLoopTellsWhenItIsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		due, writing time.Duration // how long before now; below 0: never
		want         time.Duration
	}{
		"on time":        {due: lease/8 - 1, writing: -1},
		"nothing is due": {due: -1, writing: -1},
		"timer":          {due: lease / 4, writing: -1, want: lease / 4},
		"write":          {due: -1, writing: lease / 2, want: lease / 2},
		"both":           {due: lease, writing: lease / 2, want: lease},
	} {
		r := newRig(t, nil)
		now := election.Instant(time.Hour)
		at := func(before time.Duration) election.Instant {
			if before < 0 {
				return election.Never
			}
			return now.Add(-before)
		}
		r.loop.due, r.loop.writingSince = at(c.due), at(c.writing)
		r.loop.doubt(now)
		got := r.lateBy()
		if c.want == 0 && len(got) > 0 || c.want > 0 && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%s: the elector was notified of %v, want %v", name, got, c.want)
		}
		r.loop.due, r.loop.writingSince = at(c.due), at(c.writing)
		r.loop.doubt(now + 1)
		if again := r.lateBy(); len(again) != len(got) {
			t.Errorf("%s: it was notified twice", name)
		}
	}
}

func TestTheLoopKnowsWhatIsDue(t *testing.T) {
	r := newRig(t, func(in election.Input) election.Output {
		out := election.Output{WakeAt: 7000}
		if _, ok := in.(election.Campaign); ok {
			out.Persist = &election.Persist{Write: 1}
		}
		return out
	})
	r.loop.feed(5000, election.Tick{})
	if r.loop.due != 7000 || r.loop.writingSince != election.Never {
		t.Errorf("due %d, writing since %d", r.loop.due, r.loop.writingSince)
	}
	r.loop.feed(8000, election.Campaign{}) // WakeAt is in the past, so the loop is due now
	if r.loop.due != 8000 || r.loop.writingSince != 8000 {
		t.Errorf("due %d, writing since %d", r.loop.due, r.loop.writingSince)
	}
}
