package membership

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

const (
	maxRefusals = 256
	// hintFor is how long a refusal that rests on single messages stands after
	// the last of them.
	hintFor = 2 * time.Minute
)

// hint is a sign of a refusal outside memberlist's list: a line of its log, a
// failed join, an advertisement that was not let in.
type hint struct {
	cause Cause
	name  string         // empty when only the host is known
	addr  netip.AddrPort // port 0 when only the host is known
	text  string
}

// ledger keeps what is refused now and reports each cause of each agent once
// until it changes. It belongs to the loop.
type ledger struct {
	standing map[refusalKey]*standing
}

type refusalKey struct {
	cause Cause
	name  string
	addr  netip.AddrPort
}

type standing struct {
	refusal  Refusal
	until    time.Time // zero: as long as the views say so
	reported bool
}

func newLedger() *ledger { return &ledger{standing: map[refusalKey]*standing{}} }

// settle takes what the newest view refuses; what it refuses no longer is over.
func (l *ledger) settle(now time.Time, refused []Refusal) {
	current := map[refusalKey]bool{}
	for _, r := range refused {
		k := refusalKey{r.Cause, r.Name, r.Addr}
		current[k] = true
		l.put(k, r, time.Time{})
	}
	for k, s := range l.standing {
		if s.until.IsZero() && !current[k] || !s.until.IsZero() && now.After(s.until) {
			delete(l.standing, k)
		}
	}
}

// note takes a hint. Of a host whose key or cluster differs every message
// fails: it is known by its address alone.
func (l *ledger) note(now time.Time, r Refusal) {
	k := refusalKey{r.Cause, r.Name, netip.AddrPortFrom(r.Addr.Addr(), 0)}
	l.put(k, r, now.Add(hintFor))
}

func (l *ledger) put(k refusalKey, r Refusal, until time.Time) {
	old, ok := l.standing[k]
	switch {
	case !ok && len(l.standing) >= maxRefusals:
		return // it will come again when there is room
	case !ok:
		l.standing[k] = &standing{refusal: r, until: until}
	default:
		old.until = until
		if !until.IsZero() {
			return // the first text stays: the same cause has several symptoms
		}
		if old.refusal.Err.Error() != r.Err.Error() {
			old.refusal, old.reported = r, false
		}
	}
}

// report sends what is new, as far as there is room; the rest comes next time.
func (l *ledger) report(to chan<- Refusal) {
	for _, s := range l.sorted() {
		if s.reported {
			continue
		}
		select {
		case to <- s.refusal:
			s.reported = true
		default:
			return
		}
	}
}

// list returns what is refused now, sorted.
func (l *ledger) list() []Refusal {
	var out []Refusal
	for _, s := range l.sorted() {
		out = append(out, s.refusal)
	}
	return out
}

func (l *ledger) sorted() []*standing {
	all := make([]*standing, 0, len(l.standing))
	for _, s := range l.standing {
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y *standing) int {
		a, b := x.refusal, y.refusal
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cause, b.Cause))
	})
	return all
}
