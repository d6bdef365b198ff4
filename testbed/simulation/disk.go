package simulation

import (
	"bytes"
	"slices"
	"time"

	"github.com/doyen-election/doyen/codec"
	"github.com/doyen-election/doyen/election"
)

// disk is what a host does not forget.
type disk struct {
	bytes   []byte
	state   election.State // decoded from bytes
	pending []byte         // of the write under way
	number  uint64         // its number
	slow    int            // troubles under way
	failing int
}

// put makes the bytes durable, and checks that nothing promised is taken back.
func (d *disk) put(w *world, a *agent, s election.State) {
	data, err := codec.EncodeState(s)
	if err != nil {
		w.fail("durable state", "%s can't encode %s: %v", a.peer, describeState(s), err)
		return
	}
	d.reach(w, a, data)
}

func (d *disk) reach(w *world, a *agent, data []byte) {
	state, err := codec.DecodeState(data)
	if err != nil {
		w.fail("durable state", "%s can't decode what it wrote: %v", a.peer, err)
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
	if r := d.state.Roster; r != nil && (state.Roster == nil || state.Roster.Version.Before(r.Version)) {
		w.fail("roster on disk", "%s: from %s to %s", a.peer, describeRoster(r), describeRoster(state.Roster))
	}
	d.bytes, d.state = data, state
	if r := state.Roster; r != nil && !r.Joint() && w.newest.Before(r.Version) && r.Version.Driver > 0 {
		w.newest = r.Version
		w.stats.Rosters++
	}
}

// write begins a write. It ends after a while, well or not.
func (w *world) write(a *agent, p *election.Persist) {
	if a.disk.pending != nil {
		w.fail("one write", "%s begins write %d while another is under way", a.peer, p.Write)
		return
	}
	data, err := codec.EncodeState(p.State)
	if err != nil {
		w.fail("durable state", "%s can't encode %s: %v", a.peer, describeState(p.State), err)
		return
	}
	w.stats.Writes++
	a.disk.pending, a.disk.number = data, p.Write
	w.writtenIn(a, w.writeTime(a))
}

// writtenIn ends the write under way after that time, unless it has ended by
// then.
func (w *world) writtenIn(a *agent, in time.Duration) {
	life, number := a.life, a.disk.number
	w.after(in, func() {
		if a.life == life && a.disk.pending != nil && a.disk.number == number {
			w.written(a, number)
		}
	})
}

func (w *world) writeTime(a *agent) time.Duration {
	d := around(a.rng, w.plan.write)
	if a.disk.slow > 0 {
		d += around(a.rng, w.plan.timing.Lease)
	}
	return d
}

func (w *world) written(a *agent, write uint64) {
	if a.frozen > 0 {
		return // freeze writes on when it ends
	}
	data := a.disk.pending
	a.disk.pending = nil
	if a.disk.failing == 0 {
		a.disk.reach(w, a, data)
		w.input(a, election.Persisted{Write: write})
		return
	}
	if chance(a.rng, 0.5) {
		a.disk.reach(w, a, data) // it failed, but only after the bytes were there
	}
	w.input(a, election.PersistFailed{Write: write})
}

// crash leaves a write under way on the disk, or not, or part of it: beside the
// old state, as the agent's store writes a new file and then gives it the name.
// A part must never be taken for a state.
func (d *disk) crash(w *world, a *agent) {
	data := d.pending
	d.pending = nil
	if data == nil {
		return
	}
	switch a.rng.IntN(3) {
	case 0:
		w.note(a, "the write under way is MISSING")
	case 1:
		d.reach(w, a, data)
	default:
		w.stats.Torn++
		w.note(a, "the write under way is TORN")
		part := d.torn(a, data)
		if _, err := codec.DecodeState(part); err == nil && !bytes.Equal(part, d.bytes) {
			w.fail("durable state", "%s takes a torn write for a state", a.peer)
		}
	}
}

// torn returns part of the data: its beginning, or blocks of it among old bytes.
func (d *disk) torn(a *agent, data []byte) []byte {
	part := slices.Clone(data)
	at := a.rng.IntN(len(part))
	if a.rng.IntN(2) == 0 {
		return part[:at]
	}
	end := part[at:]
	clear(end)
	copy(end, d.bytes[min(at, len(d.bytes)):])
	if bytes.Equal(part, data) {
		end[0]++
	}
	return part
}
