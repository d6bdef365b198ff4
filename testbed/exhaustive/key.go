package exhaustive

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/doyen-election/doyen/bully"
	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/ring"
)

// Two worlds with the same key behave the same forever. A key contains all that agents and
// messages hold, with private fields, so a new field counts at once. The exceptions:
//
//   - What never changes here, and what is only counted (same).
//   - Absolute instants: a key has each relative to the clock of the agent that read it, and bounded
//     by the slack, which is longer than everything that the protocol waits for.
//   - The numbers of sends: only the time of the send matters, and whether the contest counts
//     the send for the term that it leads.
//   - The numbers of rounds: a key has how many rounds the agent has begun since, up to 30.
//   - The order of messages under way, unless they arrive in turn (Bounds.Swaps).

var slack = election.Instant(2 * timing.Lease)

var same = []reflect.Type{
	reflect.TypeFor[election.Config](), reflect.TypeFor[election.Roster](),
	reflect.TypeFor[election.State](), // except for its grants, which are written separately
	reflect.TypeFor[contest.Counts](),
}

var (
	number     = reflect.TypeFor[uint64]()
	selections = []string{reflect.TypeFor[bully.Bully]().PkgPath(), reflect.TypeFor[ring.Ring]().PkgPath()}
)

func (w *world) hash(b Bounds) uint64 { return xxhash.Sum64(w.key(b.Swaps == AnyOrder)) }

func (w *world) key(anyOrder bool) []byte {
	b := appendNumbers(nil, uint64(w.spent), uint64(w.swaps), uint64(w.last), uint64(w.leader.Lineage))
	for i := range w.agents {
		b = w.appendAgent(b, i)
	}
	flights := make([][]byte, len(w.network))
	for i, f := range w.network {
		flights[i] = w.appendFlight(nil, f)
	}
	if anyOrder {
		slices.SortFunc(flights, bytes.Compare)
	}
	return append(b, bytes.Join(flights, nil)...)
}

func (w *world) appendAgent(b []byte, i int) []byte {
	a := &w.agents[i]
	for _, is := range []bool{a.alive, a.paused, a.cut, a.slow, a.leading, a.pending != nil} {
		b = append(b, flagOf(is))
	}
	b = appendNumbers(b, uint64(a.boot), uint64(a.rate), uint64(a.owed))
	b = w.append(b, i, reflect.ValueOf(a.disk.Grants))
	if a.pending != nil {
		b = w.append(b, i, reflect.ValueOf(a.disk.After(a.pending).Grants))
	}
	b = w.append(b, i, reflect.ValueOf(a.row))
	b = appendNumbers(b, uint64(len(a.acts)))
	for _, x := range a.acts {
		b = appendNumbers(b, uint64(x.holder.Lineage), uint64(x.term), uint64(x.until-a.clock))
	}
	if !a.alive {
		return b
	}
	p := a.process
	b = appendNumbers(b, uint64(max(0, a.wake-a.clock)), uint64(w.ago(i, p.beatAt)))
	b = w.append(b, i, reflect.ValueOf(p.ledger.State().Grants))
	for j, o := range p.peers {
		b = appendNumbers(b, uint64(w.ago(j, o.stamp)))
		o.stamp = 0
		b = w.append(b, i, reflect.ValueOf(o))
	}
	return w.append(w.append(b, i, reflect.ValueOf(p.contest)), i, reflect.ValueOf(p.voter))
}

func (w *world) appendFlight(b []byte, f flight) []byte {
	m := f.message
	b = append(b, byte(f.from), byte(f.to), flagOf(f.late))
	if h, beats := m.(election.Heartbeat); beats {
		b = appendNumbers(b, uint64(w.ago(f.to, h.Echo)))
		h.Echo = 0
		m = h
	}
	switch m.(type) {
	case election.BullyAnswer, election.BullyDecline: // they answer a round of the receiver
		return w.appendMessage(b, f.to, reflect.ValueOf(m))
	}
	return w.appendMessage(b, f.from, reflect.ValueOf(m))
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func (w *world) appendMessage(b []byte, i int, m reflect.Value) []byte {
	return w.append(append(w.appendWorth(b, m), m.Type().Name()...), i, m)
}

// append writes a value and all that it refers to. Its instants are readings of agent i's clock.
func (w *world) append(b []byte, i int, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		return append(b, flagOf(v.Bool()))
	case reflect.Int, reflect.Int64:
		n := v.Int()
		if v.Type() == reflect.TypeFor[election.Instant]() {
			n = int64(w.ago(i, election.Instant(n)))
		}
		return binary.AppendVarint(b, n)
	case reflect.Uint8, reflect.Uint64:
		n := v.Uint()
		if v.Type() == reflect.TypeFor[election.SendID]() {
			n = min(n, 1) // appendWorth writes what matters of the number
		}
		return binary.AppendUvarint(b, n)
	case reflect.Float64:
		return binary.AppendUvarint(b, math.Float64bits(v.Float()))
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Pointer, reflect.Interface:
		if b = append(b, flagOf(v.IsNil())); v.IsNil() {
			return b
		}
		if v.Kind() == reflect.Interface && v.Elem().Kind() == reflect.Struct {
			return w.appendMessage(b, i, v.Elem())
		}
		return w.append(b, i, v.Elem())
	case reflect.Slice:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for j := range v.Len() {
			b = w.append(b, i, v.Index(j))
		}
		return b
	case reflect.Map: // the keys are names or peers
		if v.Len() == 0 {
			return append(b, 0)
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return cmp.Compare(x.String(), y.String()) })
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for _, k := range keys {
			b = w.append(w.append(b, i, k), i, v.MapIndex(k))
		}
		return b
	case reflect.Struct:
		t := v.Type()
		if slices.Contains(same, t) {
			return b
		}
		for j := range v.NumField() {
			if f := v.Field(j); f.Kind() == reflect.Uint64 && f.Type() == number && numbersRounds(t) {
				b = binary.AppendVarint(b, w.roundsAgo(starter(i, v), f.Uint()))
			} else {
				b = w.append(b, i, f)
			}
		}
		return b
	}
	return fmt.Appendln(b, v)
}

// appendWorth writes what matters of a send number in a message.
func (w *world) appendWorth(b []byte, m reflect.Value) []byte {
	holder := m
	switch m.Type() {
	case reflect.TypeFor[election.VoteRequest](), reflect.TypeFor[election.VoteGrant]():
		holder = m.FieldByName("Holder")
	case reflect.TypeFor[election.Heartbeat](), reflect.TypeFor[election.HeartbeatAck]():
	default:
		return b
	}
	boot, send := election.LineageID(holder.FieldByName("Lineage").Uint()), election.SendID(m.FieldByName("Send").Uint())
	i := agentOf(boot)
	a := &w.agents[i]
	if !a.alive || a.boot != boot {
		return append(b, 0)
	}
	at, fresh := a.process.sends.At(send)
	if !fresh {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1, flagOf(a.process.contest.ClaimedBy(send))), int64(w.ago(i, at)))
}

// numbersRounds reports whether the plain numbers of that type are those of rounds.
func numbersRounds(t reflect.Type) bool {
	return slices.Contains(selections, t.PkgPath()) || t == reflect.TypeFor[election.RoundID]() || strings.HasPrefix(t.Name(), "Bully")
}

// starter returns which agent began the round whose number the value has.
func starter(i int, v reflect.Value) int {
	for _, name := range []string{"id", "origin", "Origin"} {
		if id := v.FieldByName(name); id.IsValid() && id.String() != "" {
			return indexOf(election.PeerID(id.String()))
		}
	}
	return i
}

// roundsAgo returns how many rounds agent i has begun since that one, but at most 30; -1 if the number is 0:
// no round.
func (w *world) roundsAgo(i int, round uint64) int64 {
	if round == 0 {
		return -1
	}
	return int64(min(30, w.agents[i].rounds-round))
}

// ago returns how long ago agent i's clock read that instant, but at most the slack. It is
// below 0 for a future instant.
func (w *world) ago(i int, at election.Instant) election.Instant {
	if at == election.Never {
		return at
	}
	return min(slack, w.agents[i].clock-at)
}
