package exhaustive

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/doyen-election/doyen/election"
)

// Two worlds with the same key behave the same for ever. What does not matter to the
// future must not tell worlds apart:
//
//   - Absolute instants: each counts from the clock of the agent that read it. A deadline
//     that has passed is 0, however long ago; other instants (since when, sent when) count
//     back to the slack, which is above everything that the protocol waits for.
//   - The numbers of sends: an answer is worth what the send time of its request is worth,
//     and whether the contest counts it for the term that it leads.
//   - The numbers of changes and writes of the ledger: only which of them are durable, and
//     in what order the others are.
const slack = election.Instant(2 * 1200e6)

func (w *world) hash() uint64 { return xxhash.Sum64(w.key()) }

// key writes everything that can matter.
func (w *world) key() []byte {
	b := fmt.Appendln(nil, w.spent, w.last, w.leader.Boot)
	for i := range w.agents {
		b = w.agentKey(b, i)
	}
	flights := make([][]byte, len(w.network))
	for i, f := range w.network {
		m := w.plain(f.from, f.to, f.message)
		flights[i] = fmt.Appendf(nil, "%d %d %t %T %v\n", f.from, f.to, f.late, m, m)
	}
	slices.SortFunc(flights, bytes.Compare)
	return append(b, bytes.Join(flights, nil)...)
}

func (w *world) agentKey(b []byte, i int) []byte {
	a := &w.agents[i]
	b = fmt.Appendln(b, a.alive, a.paused, a.cut, a.slow, a.boot, a.rate, a.owed, a.leading, a.disk.Grants, a.pending != nil)
	if a.pending != nil {
		b = fmt.Appendln(b, a.pending.State.Grants)
	}
	for _, x := range a.acts {
		b = fmt.Appendln(b, x.holder.Boot, x.term, x.until-a.clock)
	}
	if !a.alive {
		return b
	}
	p := a.process
	b = fmt.Appendln(b, max(0, a.wake-a.clock), w.ago(i, p.beatAt), p.ledger.State().Grants)
	for j, o := range p.peers {
		b = fmt.Appendln(b, w.ago(j, o.stamp))
		o.stamp = 0
		b = w.text(b, i, reflect.ValueOf(o))
	}
	return w.text(w.text(b, i, reflect.ValueOf(p.contest)), i, reflect.ValueOf(p.voter))
}

// ago is how long ago agent i's clock read that, no more than the slack; below 0 if that
// is to come.
func (w *world) ago(i int, at election.Instant) election.Instant {
	if at == election.Never {
		return at
	}
	return min(slack, w.agents[i].clock-at)
}

// plain is the message with what does not matter taken out.
func (w *world) plain(from, to int, m election.Message) election.Message {
	switch m := m.(type) {
	case election.VoteRequest:
		m.Send, m.Roster = w.worth(m.Holder.Boot, m.Send), election.Roster{}
		return m
	case election.VoteGrant:
		m.Send, m.Stamp = w.worth(m.Holder.Boot, m.Send), w.ago(from, m.Stamp)
		return m
	case election.Heartbeat:
		m.Send, m.Echo = w.worth(m.Boot, m.Send), w.ago(to, m.Echo)
		return m
	case election.HeartbeatAck:
		m.Send, m.Stamp = w.worth(m.Boot, m.Send), w.ago(from, m.Stamp)
		return m
	}
	return m
}

// worth is what an answer to that send of that process run would be worth; 0: nothing.
func (w *world) worth(boot election.BootID, id election.SendID) election.SendID {
	i := agentOf(boot)
	a := &w.agents[i]
	if !a.alive || a.boot != boot {
		return 0
	}
	at, fresh := a.process.sends.At(id)
	switch {
	case !fresh:
		return 0
	case a.process.contest.ClaimedBy(id):
		return election.SendID(2*w.ago(i, at) + 2)
	}
	return election.SendID(2*w.ago(i, at) + 1)
}
