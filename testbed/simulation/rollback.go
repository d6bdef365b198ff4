package simulation

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/testbed/messages"
)

// maxPast bounds how many older copies of a data directory are kept.
const maxPast = 8

// rollBack restores an older copy of a host's data directory. Its promises are lost, so G1 and
// G2 do not hold any more, and neither does what rests on them. This must still hold: no other
// agent is reported to have an older copy, and an agent that has learnt of its older copy
// neither promises nor leads.
func (w *world) rollBack(r *rand.Rand) {
	a, lasts, which := w.victim(r), w.lasts(r), r.IntN(maxPast)
	if len(a.disk.past) == 0 || a.frozen > 0 || a.disk.damaged != nil {
		return
	}
	w.stop(a, true)
	w.later(lasts, func() { w.start(a) })
	older := a.disk.past[which%len(a.disk.past)]
	if !a.disk.files.settled() || bytes.Equal(older, a.disk.sure) {
		return
	}
	state, err := codec.DecodeState(older)
	if err != nil {
		w.fail("durable state", "%s wrote what can't be read: %v", a.peer, err)
		return
	}
	w.note(a, "an OLDER COPY of its data directory is restored: %s", messages.State(state))
	a.disk.files.format(stateFile, older)
	a.disk.sure, a.disk.state = older, state
	a.rolledBack, w.rolledBack = true, true
}

// rests reports whether the rule holds only as long as data directories keep all promises.
func rests(rule string) bool {
	return slices.Contains([]string{"G1", "G2", "G4", "G5", "H5", "counter", "stability", "terms on disk", "roster on disk",
		"K4b", "K4d", "G7", "stale answer", "announced terms never fall", "announced deadlines never fall", "traffic"}, rule)
}

// checkTrusted checks that only agents with an older copy of their data directory are reported
// to have one.
func (w *world) checkTrusted(a *agent) {
	if !a.alive || a.elector == nil {
		return
	}
	for _, x := range a.elector.Status(a.clock.at(w.Now)).Warnings {
		switch {
		case x.Code == "data_dir_older" && !a.rolledBack:
			w.fail("older copies", "%s reports: %+v", a.peer, x)
		case meetsFormer(x) && a.own == nil, x.Code == "data_dir_shared" && !a.disk.taken:
			w.fail("barred", "%s reports without reason: %+v", a.peer, x)
		case bars(x):
			w.stats.Barred++
			if meetsFormer(x) {
				w.stats.Former++
			}
		case x.Code == "voter_data_dir_older":
			for _, b := range w.agents {
				if b.name == x.Agent && !b.rolledBack {
					w.fail("older copies", "%s reports: %+v", a.peer, x)
				}
			}
		}
	}
}
