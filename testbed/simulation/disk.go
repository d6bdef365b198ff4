package simulation

import (
	"bytes"
	"errors"
	"time"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/codec"
	"github.com/doyen-election/doyen/testbed/messages"
)

// disk is what survives on a host, and the write of its agent that is under way.
type disk struct {
	files    filesystem
	calls    *calls            // of the process that runs
	record   *store.Record     // of the same process
	sure     []byte            // the content of the state file that no power cut can take back
	state    election.State    // decoded from sure
	pending  *election.Persist // the write under way
	slow     int               // how many faults make it slow now
	failing  int
	past     [][]byte       // earlier values of sure, newest first, if older copies may be restored
	taken    bool           // another process has written to it
	told     bool           // the agent has learnt that another process has written
	believed election.State // what the agent had written before the other process did
	damaged  []byte         // the state file as it was before it was damaged; nil: it is not damaged
}

// stateFile is the name that the agent's store gives to the file of the state.
const stateFile = "state"

// format gives a host a disk with the state on it, and nothing else.
func (d *disk) format(w *world, a *agent, s election.State) {
	data, err := codec.EncodeState(s)
	if err != nil {
		w.fail("durable state", "%s can't encode %s: %v", a.peer, messages.State(s), err)
		return
	}
	*d = disk{files: newFilesystem(), slow: d.slow, failing: d.failing}
	d.files.format(stateFile, data)
	d.look(w, a)
}

// look records what is on disk for sure, and checks that no promise is taken back.
func (d *disk) look(w *world, a *agent) {
	data, there := d.files.sure(stateFile)
	if bytes.Equal(data, d.sure) || d.damaged != nil {
		return
	}
	state, err := codec.DecodeState(data)
	if err != nil || !there {
		w.fail("durable state", "the disk of %s holds no state that can be read: %v", a.peer, err)
		return
	}
	for name, g := range d.state.Grants {
		now, onRecord := state.Grants[name]
		switch {
		case !onRecord && state.Forgotten >= g.Term:
			w.stats.Forgotten++
		case now.Term < g.Term:
			w.fail("terms on disk", "%s: the term of %s falls from %d to %d", a.peer, name, g.Term, now.Term)
		case now.Term == g.Term && now.Holder != g.Holder:
			w.fail("terms on disk", "%s: term %d of %s goes from %s to %s", a.peer, g.Term, name, g.Holder, now.Holder)
		case now.Term == g.Term && g.Released && !now.Released:
			w.fail("terms on disk", "%s: term %d of %s was released and is not any more", a.peer, g.Term, name)
		}
	}
	if state.Writes < d.state.Writes {
		w.fail("terms on disk", "%s: the count of writes falls from %d to %d", a.peer, d.state.Writes, state.Writes)
	}
	if r := d.state.Roster; r != nil && (state.Roster == nil || state.Roster.Version.Before(r.Version)) {
		w.fail("roster on disk", "%s: from %s to %s", a.peer, messages.Roster(r), messages.Roster(state.Roster))
	}
	before := d.state
	if w.changes(copies) && d.sure != nil {
		d.past = append([][]byte{d.sure}, d.past[:min(len(d.past), maxPast-1)]...)
	}
	d.sure, d.state = data, state
	if state.Roster != nil && before.Roster == nil {
		w.joinedCluster(a, state.Roster.Cluster)
	}
	if a.own != nil {
		return
	}
	w.shared = w.shared || w.formed && state.Roster != nil && before.Roster == nil
	w.formed = w.formed || state.Roster != nil
	if state.Roster == nil && state.Pending != nil && !before.Pending.Same(state.Pending) {
		w.loseEarly(state.Pending)
	}
	if r := state.Roster; r != nil && !r.Joint() && w.newest.Before(r.Version) && r.Version.Driver > 0 {
		w.newest = r.Version
		w.stats.Rosters++
	}
}

// open lets a new process read the disk, as the agent's store does. It reports false if the
// store refuses to start.
func (d *disk) open(w *world, a *agent) (election.State, bool) {
	c := &calls{filesystem: &d.files, dies: -1, fails: -1, rng: a.rng}
	if d.failing > 0 {
		c.fails = a.rng.IntN(4)
	}
	before := d.files.shown[stateFile]
	text := before.data
	record, state, err := store.OpenRecord(c)
	d.look(w, a)
	_, refused := errors.AsType[*store.Error](err)
	switch {
	case err == nil && d.damaged != nil && !bytes.Equal(before.data, d.damaged):
		w.fail("durable state", "%s takes a damaged file for its state", a.peer)
	case err != nil && !refused:
		w.fail("durable state", "%s can't read back what it wrote: %v", a.peer, err)
	case refused && d.damaged == nil && c.fails < 0:
		w.fail("durable state", "%s refuses a disk that is well: %v", a.peer, err)
	case refused:
		w.note(a, "REFUSES to start: %v", err)
	}
	if after := d.files.shown[stateFile]; err != nil && (after != before || !bytes.Equal(after.data, text)) {
		w.fail("durable state", "%s refuses its state, and changes it", a.peer)
	}
	d.calls, d.record, d.taken, d.told = c, record, false, false
	return state, err == nil
}

func (w *world) write(a *agent, p *election.Persist) {
	if a.disk.pending != nil {
		w.fail("one write", "%s begins write %d while another is under way", a.peer, p.Write)
		return
	}
	w.stats.Writes++
	a.disk.pending = p
	w.writtenIn(a, w.writeTime(a))
}

// writtenIn ends the write under way after the given time, unless it has ended earlier.
func (w *world) writtenIn(a *agent, in time.Duration) {
	number := a.disk.pending.Write
	w.after(in, a.inLife(func() {
		if p := a.disk.pending; p != nil && p.Write == number {
			w.written(a)
		}
	}))
}

func (w *world) writeTime(a *agent) time.Duration {
	d := around(a.rng, w.plan.write)
	if a.disk.slow > 0 {
		d += around(a.rng, w.plan.timing.Lease)
	}
	return d
}

func (w *world) written(a *agent) {
	if a.frozen > 0 {
		return // the end of the freeze calls writtenIn again
	}
	number, fails := a.disk.pending.Write, -1
	if a.disk.failing > 0 {
		fails = a.rng.IntN(maxCallsOf(a.disk.pending))
	}
	if err := a.disk.carryOut(w, a, -1, fails); err != nil {
		w.input(a, election.PersistFailed{Write: number})
		w.noticed(a, err)
		return
	}
	w.noticed(a, nil)
	w.input(a, election.Persisted{Write: number})
}

// carryOut lets the agent's store write the pending state. The process may die before one of the
// store's calls, or one of the calls may fail.
func (d *disk) carryOut(w *world, a *agent, dies, fails int) error {
	p := d.pending
	d.pending = nil
	*d.calls = calls{filesystem: &d.files, dies: dies, fails: fails, rng: a.rng}
	err := d.record.Write(*p)
	if err != nil && dies < 0 && fails < 0 && !d.taken {
		w.fail("durable state", "%s can't write %s: %v", a.peer, messages.Persist(p), err)
	}
	d.look(w, a)
	return err
}

// kill ends the process, perhaps in the middle of a write. The written bytes can still be read;
// a power cut takes back those that are not synced.
func (d *disk) kill(w *world, a *agent) {
	if d.pending == nil {
		return
	}
	_ = d.carryOut(w, a, a.rng.IntN(maxCallsOf(d.pending)+1), -1)
	if !d.files.settled() {
		w.stats.Torn++
		w.note(a, "the write under way is cut SHORT: not all that can be read is on its disk")
	}
}

// powerCut cuts the power of the disk: what is not synced may be lost.
func (d *disk) powerCut(w *world, a *agent) {
	if !d.files.settled() {
		w.stats.TakenBack++
		w.note(a, "the power cut TAKES BACK what was not synced")
	}
	d.files.powerCut(a.rng)
	d.look(w, a)
}

// damage corrupts the state file, as a bad block or a careless copy does.
func (d *disk) damage(a *agent) {
	f := d.files.shown[stateFile]
	d.damaged = f.data
	for bytes.Equal(f.data, d.damaged) {
		f.data = torn(a.rng, d.damaged, nil)
	}
	f.synced = f.data
}

func (d *disk) restore() {
	if d.damaged != nil {
		d.files.format(stateFile, d.damaged)
		d.damaged = nil
	}
}
