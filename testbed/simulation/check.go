package simulation

import (
	"reflect"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/testbed/messages"
)

const (
	maxSends    = 512          // messages of one step
	maxAnnounce = 32           // announcements and withdrawals of one step
	maxSpin     = 5 * maxInbox // steps of one agent in spinWindow; many, because it may just have been resumed
	spinWindow  = int64(time.Millisecond)
)

// spin counts the steps of an agent, to notice if it wakes itself without end.
type spin struct {
	since int64
	steps int
}

func (w *world) checkOutput(a *agent, local election.Instant, out election.Output) {
	if out.WakeAt <= local {
		w.fail("wake", "%s wants to be woken at %d, it is %d", a.peer, out.WakeAt, local)
	}
	if many := w.options.many; len(out.Send) > maxSends+32*many || len(out.Announce)+len(out.Withdraw) > maxAnnounce+2*many {
		w.fail("bounds", "%s asks for %d messages, %d announcements and %d withdrawals in one step",
			a.peer, len(out.Send), len(out.Announce), len(out.Withdraw))
	}
	if w.Now-a.spin.since > spinWindow {
		a.spin = spin{since: w.Now}
	}
	if a.spin.steps++; a.spin.steps > maxSpin {
		w.fail("livelock", "%s takes over %d steps in %v", a.peer, maxSpin, time.Duration(spinWindow))
	}
	for _, r := range out.Replies {
		if w.replied[r.Request] {
			w.fail("replies", "%s answers request %d twice", a.peer, r.Request)
		}
		w.replied[r.Request] = true
	}
}

type inquiry struct {
	election election.Name
	least    election.Term // the term of the newest leadership when the question was asked
	life     uint32
}

// answered checks that a majority reports no leadership older than the newest at the time of the question.
func (w *world) answered(replies []election.Reply) {
	for _, r := range replies {
		w.scribe.answered(r)
		q, ok := w.inquiries[r.Request]
		if !ok {
			continue
		}
		delete(w.inquiries, r.Request)
		if r.Refusal == nil && w.plan.quorum && r.Leader.Holder.Peer != "" && r.Leader.Term < q.least {
			w.fail("stale answer", "a majority reports term %d of %s, but term %d had started before the question", r.Leader.Term, q.election, q.least)
		}
	}
}

// checkSend checks that the message rests on what is on disk, and records the claims in it.
func (w *world) checkSend(a *agent, local election.Instant, e election.Envelope) {
	s := &a.disk.state
	if a.disk.taken {
		s = &a.disk.believed
	}
	w.checkBarred(a, local, e.Message)
	w.checkRecordedFirst(a, local, e.Message)
	if m, votes := e.Message.(election.VoteGrant); votes {
		w.checkAllowed(a, m)
	}
	switch m := e.Message.(type) {
	case election.VoteGrant:
		g := s.Grants[m.Election]
		if g.Term != m.Term || g.Holder != m.Holder {
			w.fail("durable before sent", "%s grants %s@%d to %s, its disk holds %d to %s", a.peer, m.Election, m.Term, m.Holder, g.Term, g.Holder)
		}
		w.checkGrant(a, m)
	case election.RosterAccept:
		if s.Roster == nil || s.Roster.Version != m.Version || s.Grants[election.RosterElection].Term < m.Driver {
			w.fail("durable before sent", "%s accepts roster %v of driver %d, its disk holds %s", a.peer, m.Version, m.Driver, messages.State(*s))
		}
	case election.GenesisAccept:
		pending := s.Pending != nil && s.Pending.Attempt == m.Attempt && s.Pending.Roster.Cluster == m.Cluster
		if !pending && (s.Roster == nil || s.Roster.Cluster != m.Cluster) {
			w.fail("durable before sent", "%s accepts genesis %s#%d, its disk holds %s", a.peer, m.Cluster, m.Attempt, messages.State(*s))
		}
	case election.Report:
		if m.Roster != nil && (s.Roster == nil || s.Roster.Cluster != m.Roster.Cluster) {
			w.fail("durable before sent", "%s reports a roster of cluster %s, its disk holds %s", a.peer, m.Roster.Cluster, messages.State(*s))
		}
	case election.Heartbeat:
		for _, c := range m.Claims {
			w.checkClaim(a, local, c)
		}
	case election.News:
		for _, h := range m.Leaders {
			if h.Holder == a.holder() {
				w.checkClaim(a, local, election.Claim{Election: h.Election, Term: h.Term, Remaining: h.Remaining})
			}
		}
	}
}

// checkGrant checks that no voter ever grants one term to two holders.
func (w *world) checkGrant(a *agent, m election.VoteGrant) {
	l := w.log(a, m.Election)
	if l == nil {
		return
	}
	v := vote{voter: a.peer, term: m.Term}
	if h, ok := l.grants[v]; ok && h != m.Holder {
		w.fail("G2", "%s grants term %d of %s to %s and to %s", a.peer, m.Term, m.Election, h, m.Holder)
	}
	l.grants[v] = m.Holder
}

// checkClaim checks that a term is claimed by one holder only.
func (w *world) checkClaim(a *agent, local election.Instant, c election.Claim) {
	l := w.log(a, c.Election)
	if l == nil || !w.plan.quorum {
		return
	}
	self := a.holder()
	if h, ok := l.owners[c.Term]; ok && h != self {
		w.fail("G2", "%s claims term %d of %s, which %s had", self, c.Term, c.Election, h)
	}
	l.owners[c.Term] = self
	l.extend(a, c.Term, local.Add(c.Remaining))
	if c.Election == election.RosterElection {
		w.acts(l, actor{kind: claimer, host: a, epoch: a.clock.epoch, holder: self, term: c.Term, until: local.Add(c.Remaining)})
	}
}

// extend records until when a lease lasts, as its holder has shown.
func (l *contestLog) extend(a *agent, t election.Term, until election.Instant) {
	x := leased{t, a.holder()}
	end := l.ends[x]
	if end.host != a || end.epoch != a.clock.epoch {
		end = leaseEnd{host: a, epoch: a.clock.epoch}
	}
	end.until = max(end.until, until)
	l.ends[x] = end
}

func (w *world) checkStatus(a *agent, local election.Instant, c *elector.ContestStatus) {
	l := w.log(a, c.Election)
	if l == nil {
		return
	}
	w.checkTold(a, local, l, c)
	self := a.holder()
	leads := c.State == elector.Leading && c.Leader == self && local < c.ValidUntil
	x := actor{kind: claimer, host: a, epoch: a.clock.epoch, holder: self, term: c.Term, until: c.ValidUntil}
	if leads {
		l.extend(a, c.Term, c.ValidUntil)
		w.acts(l, x)
		w.checkRecorded(a, l, c)
		return
	}
	w.stopActing(l.find(claimer, self))
	if c.Leader.Peer != "" && c.Leader != self && local < c.ValidUntil && w.plan.quorum {
		w.checkFollower(a, w.logOfLeader(a, c), c)
	}
}

// checkTold checks what an agent's status shows within one life. The terms of the leaders that it
// names in one cluster never fall. Nor do the ends of its own leases, by which programs act. The
// agent claims no lease after the lease's end.
func (w *world) checkTold(a *agent, local election.Instant, l *contestLog, c *elector.ContestStatus) {
	if c.State != elector.Leading && (a.lifeNumber() > 1 || w.plan.revised) {
		a.deadlines[l.index] = 0 // its next lease may be shorter, and end before this deadline
	}
	if c.Leader.Peer == "" || !w.plan.quorum {
		return
	}
	if c.State == elector.Leading && local >= c.ValidUntil && w.stepping == a {
		w.fail("lease answer", "%s claims at %d to lead %s until %d", a.peer, local, c.Election, c.ValidUntil)
	}
	if c.State == elector.Leading {
		if told := &a.deadlines[l.index]; c.ValidUntil < *told {
			w.fail("announced deadlines never fall", "%s claimed to lead %s until %d, and now only until %d", a.peer, c.Election, *told, c.ValidUntil)
		} else {
			*told = c.ValidUntil
		}
	}
	if l := w.logOfLeader(a, c); c.Term < a.terms[l] {
		w.fail("announced terms never fall", "%s named a leader of %s in term %d, and now in term %d", a.peer, c.Election, a.terms[l], c.Term)
	} else {
		a.terms[l] = c.Term
	}
}

// checkFollower checks G5: an agent names no leader after the end of the leader's lease. It
// assumes that all clocks keep their present rates.
func (w *world) checkFollower(a *agent, l *contestLog, c *elector.ContestStatus) {
	end, ok := l.ends[leased{c.Term, c.Leader}]
	switch {
	case !ok || l.owners[c.Term] != c.Leader:
		w.fail("G5", "%s names %s in term %d of %s, which it never claimed", a.peer, c.Leader, c.Term, c.Election)
	case end.epoch != end.host.clock.epoch: // the leader's host was rebooted: its old clock is gone
	default:
		named, over := a.clock.when(c.ValidUntil), end.host.clock.when(end.until)
		if named > over {
			w.fail("G5", "%s will name %s in term %d of %s until %v past the end of its lease", a.peer, c.Leader,
				c.Term, c.Election, time.Duration(named-over))
		}
	}
}

// maxFootprint bounds the elements of all slices and maps that an elector keeps at the end of a
// run, per agent of the cluster and per election. An elector that does not forget what it should
// has more.
const maxFootprint = 400

// checkFootprints checks that no elector has grown beyond the bound.
func (w *world) checkFootprints() {
	if w.violation != nil || w.options.Seed%8 != 0 {
		return // only in one run of 8: a count costs as much as some hundred steps
	}
	most := maxFootprint * len(w.agents) * len(w.logs)
	for _, a := range w.agents {
		if !a.alive {
			continue
		}
		n := footprint(reflect.ValueOf(a.elector), map[uintptr]bool{})
		w.stats.Footprint = max(w.stats.Footprint, n/(len(w.agents)*len(w.logs)))
		if n > most {
			w.fail("memory", "the elector of %s keeps %d elements after %d steps, %d are plenty", a.peer, n, w.stats.Steps, most)
		}
	}
}

// footprint counts the elements of all slices and maps reachable from v.
func footprint(v reflect.Value, seen map[uintptr]bool) int {
	n := 0
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return 0
		}
		seen[v.Pointer()] = true
		return footprint(v.Elem(), seen)
	case reflect.Interface:
		if !v.IsNil() {
			return footprint(v.Elem(), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += footprint(v.Field(i), seen)
		}
	case reflect.Slice:
		n = v.Cap()
		fallthrough
	case reflect.Array:
		if k := v.Type().Elem().Kind(); k < reflect.Array && k != reflect.Uintptr {
			return n // numbers
		}
		for i := range v.Len() {
			n += footprint(v.Index(i), seen)
		}
	case reflect.Map:
		n = v.Len()
		for i := v.MapRange(); i.Next(); {
			n += footprint(i.Value(), seen)
		}
	}
	return n
}
