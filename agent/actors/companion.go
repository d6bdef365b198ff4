package actors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// companionGrace is how long a host goes on leading without the companion that it needs. A
// companion that dies is usually back within moments.
const companionGrace = 5 * time.Second

// Companions are the processes that act beside the leader on this host, and what the host needs of them.
type Companions struct {
	cfg        *Config
	connected  []*Candidacy
	unattended map[*race]struct{} // races with a deed whose companion is gone
	lacking    bool               // this host leads without a companion that it needs
	lackingAt  election.Instant   // when this host hands over for lack of the companion; 0: not known yet
}

// deed is what a companion may still do in one election.
//
// The end of a companion proves that its processes have ended. It does not prove that what they had
// set up is undone. So a deed outlives its companion: it ends when a companion that acts in the
// election gives the receipt, or once the last deadline has passed (H6). A change of the
// configuration does not end it.
//
// Invariant: term is the newest term that a companion was sent and may still act under; 0: none.
type deed struct {
	term    election.Term
	until   election.Instant // the newest deadline that the companion was sent
	by      *Candidacy       // the companion that can give the receipt; nil: none is connected
	wait    *wait            // the term that waits for the receipt
	program record.Program   // the companion that was last sent a term, as recorded; kept when the deed has ended
	spent   election.Term    // a term that the companion can't be sent; a higher one was asked for instead
}

// join adds a companion, or returns a *api.ErrorDetail.
func (r *Registry) join(now election.Instant, q Request) (*Candidacy, error) {
	if refused := r.beside.occupied(nil, q.Companion.Elections); refused != nil {
		return nil, refused
	}
	r.order++
	k := newCandidacy(r.cfg.NewID(), q, r.order)
	k.companion = q.Companion
	r.byID[k.id] = k
	r.beside.connected = append(r.beside.connected, k)
	k.say(api.CampaignEvent{Type: api.CampaignCandidate})
	r.accompany(now, k)
	return k, nil
}

// Report replaces a companion's report of itself, or returns a *api.ErrorDetail.
func (r *Registry) Report(now election.Instant, id string, c api.Companion, authorized func(uid uint32) bool) error {
	k := r.byID[id]
	if k == nil || k.companion == nil || k.ended {
		return &api.ErrorDetail{Code: api.CodeNotFound, Message: "no companion on this host has this ID; it may have ended"}
	}
	if !authorized(k.request.UID) {
		return &api.ErrorDetail{Code: api.CodeForbidden, Message: "only the companion's own user, root and the agent's user may report for it"}
	}
	if refused := r.beside.occupied(k, c.Elections); refused != nil {
		return refused
	}
	for name, why := range c.Failed {
		if k.companion.Failed[name] != why {
			r.Counters.Failed.Add(1)
		}
	}
	k.companion = &c
	r.accompany(now, k)
	return nil
}

// accompany makes a companion act in the elections that this host leads, and applies its report.
func (r *Registry) accompany(now election.Instant, k *Candidacy) {
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		r.attend(now, r.races[name], k)
	}
	k.companion.Holds = nil // a report's Holds count only once
	r.review()
}

// occupied returns a refusal if another companion acts in one of the elections.
func (b *Companions) occupied(but *Candidacy, names []string) *api.ErrorDetail {
	for _, k := range b.connected {
		for _, name := range names {
			if k != but && slices.Contains(k.companion.Elections, name) {
				return &api.ErrorDetail{Code: api.CodeInUse, Message: fmt.Sprintf(
					"process %d is this host's companion in %s already: an election has one; stop it, or let it act", k.request.PID, where(name))}
			}
		}
	}
	return nil
}

func where(name string) string {
	if name == api.EveryElection {
		return "every election"
	}
	return name
}

// of returns the companion that acts in an election; nil: there is none.
func (b *Companions) of(name election.Name) *Candidacy {
	for _, of := range []string{string(name), api.EveryElection} {
		for _, k := range b.connected {
			if slices.Contains(k.companion.Elections, of) {
				return k
			}
		}
	}
	return nil
}

// attend makes a companion act in the election, if this host leads it. If this host does not lead it,
// the companion has to stop what it or an earlier companion has started there.
func (r *Registry) attend(now election.Instant, c *race, k *Candidacy) {
	d := &c.deed
	if d.by != nil {
		return
	}
	acts, leads := r.beside.of(c.name) == k, c.term != 0 && c.why == ""
	goesOn := d.term != 0 && k.sameProcess(d.program) && k.companion.Holds[string(c.name)] == uint64(d.program.Told) && now < d.until
	switch {
	case goesOn && leads:
		d.by, d.until = k, c.lease
		delete(r.beside.unattended, c)
		r.beside.send(c, api.CampaignRenewed)
	case d.term != 0 && !leads && (goesOn || acts):
		d.by = k
		delete(r.beside.unattended, c)
		if d.wait != nil {
			c.revokeCompanion()
		}
	case !acts || !leads:
	case d.program.Told < c.term:
		r.beside.begin(c, k)
	case d.spent < c.term: // the term was sent to another process, so it can't be sent to this one (K4d)
		d.spent = c.term
		r.inputs = append(r.inputs, election.Overtake{Election: c.name})
	}
}

// sameProcess reports whether a companion is the process that is on record.
func (k *Candidacy) sameProcess(p record.Program) bool {
	q := k.program
	return p.Started != 0 && p.PID == q.PID && p.Started == q.Started && p.Space == q.Space
}

// begin makes a companion act under this host's term, which it was not sent before.
func (b *Companions) begin(c *race, k *Candidacy) {
	stopped := c.deed.program.Stopped
	c.deed = deed{by: k, program: k.program}
	c.deed.program.Stopped = stopped
	delete(b.unattended, c)
	b.send(c, api.CampaignElected)
}

// send sends the companion this host's present term and its deadline. The term is put on record
// first (K1).
func (b *Companions) send(c *race, kind string) {
	d := &c.deed
	if d.program.Told != c.term {
		d.program.Told = c.term
		b.record(c)
	}
	d.term, d.until = c.term, c.lease
	d.by.say(api.CampaignEvent{Type: kind, Election: string(c.name), Term: uint64(c.term), ValidUntilBoottimeNS: int64(c.lease),
		Authority: b.cfg.Authority, Change: c.change})
}

// lead makes the companion, if there is one, act under a new term of this host.
func (b *Companions) lead(c *race) {
	switch k := b.of(c.name); {
	case c.why != "":
	case c.deed.by != nil:
		b.send(c, api.CampaignRenewed)
	case k != nil && c.deed.program.Told < c.term:
		b.begin(c, k)
	}
}

func (b *Companions) prolong(c *race, step time.Duration) {
	if d := &c.deed; d.by != nil && c.why == "" && c.lease.Sub(d.until) >= step {
		b.send(c, api.CampaignRenewed)
	}
}

// revokeCompanion notifies the companion that the leadership ends. The term waits for its receipt.
func (c *race) revokeCompanion() {
	line := c.deed.wait.revoked()
	line.Change = c.deed.wait.change
	c.deed.by.say(line)
}

// endDeed records that nothing started by a companion acts in an election any more.
func (r *Registry) endDeed(c *race, how *atomic.Uint64) {
	d := &c.deed
	w := d.wait
	d.program.Stopped = max(d.program.Stopped, d.program.Told)
	d.term, d.until, d.by, d.wait = 0, 0, nil, nil
	delete(r.beside.unattended, c)
	r.beside.record(c)
	how.Add(1)
	if w != nil {
		w.beside = false
		r.conclude(w)
	}
	r.tidy(c)
}

func (b *Companions) record(c *race) {
	if b.cfg.RecordCompanion != nil {
		b.cfg.RecordCompanion(c.name, c.deed.program)
	}
}

// leave drops a companion whose connection was closed. What it has started may still act.
func (r *Registry) leave(k *Candidacy) {
	k.ended = true
	k.end()
	r.beside.connected = slices.DeleteFunc(r.beside.connected, func(o *Candidacy) bool { return o == k })
	delete(r.byID, k.id)
	for _, c := range r.races {
		if c.deed.by == k {
			c.deed.by = nil
			r.beside.unattended[c] = struct{}{}
		}
	}
	r.review()
}

// companionStopped handles a companion's receipt: nothing that the companion has run acts in the election any more, and
// what that had set up is undone. If nobody asked for the receipt, this host gives up the leadership; why is the reason.
func (r *Registry) companionStopped(k *Candidacy, name election.Name, term election.Term, why election.Reason) {
	c := r.races[name]
	if c == nil || c.deed.by != k || c.deed.term == 0 || term != 0 && term < c.deed.term {
		return // the receipt is late, or names an older term than the one that the companion was sent last
	}
	asked := c.deed.wait != nil
	r.endDeed(c, &r.Counters.ByReceipt)
	if !asked && c.term != 0 && c.why == "" {
		c.given = why
		r.inputs = append(r.inputs, election.Resign{Election: name}) // others are tried first: the companion would fail here again
		r.dismiss(c, cmp.Or(why, ReasonStopped))                     // this host steps down even if there are no others
	}
}

// Change sends a change, as a watch would show it, to the companion that acts in the election.
func (b *Companions) Change(name election.Name, change api.Change) {
	if k := b.of(name); k != nil {
		k.say(api.CampaignEvent{Type: api.CampaignChanged, Election: string(name), Term: change.Term, Change: &change})
	}
}

// Reloaded notifies the companions that the configuration was read again.
func (b *Companions) Reloaded() {
	for _, k := range b.connected {
		k.say(api.CampaignEvent{Type: api.CampaignReloaded, Election: api.EveryElection})
	}
}

// advanceCompanions ends the deeds whose companion is gone and whose last deadline has passed. Once companionGrace has
// passed, the host steps down from the elections whose companion is missing.
func (r *Registry) advanceCompanions(now election.Instant) {
	for c := range r.beside.unattended {
		if now >= c.deed.until {
			r.endDeed(c, &r.Counters.ByDeadline)
		}
	}
	if !r.beside.lacking {
		return
	}
	r.beside.lackingAt = cmp.Or(r.beside.lackingAt, now.Add(companionGrace))
	if now < r.beside.lackingAt {
		return
	}
	r.beside.lacking = false
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		if c := r.races[name]; c.term != 0 && c.why == "" && r.beside.lacks(name) {
			r.dismiss(c, ReasonNoCompanion)
		}
	}
}

// wake is when advanceCompanions has something to do next.
func (b *Companions) wake() election.Instant {
	wake := election.Never
	for c := range b.unattended {
		wake = min(wake, c.deed.until)
	}
	if b.lacking && b.lackingAt > 0 {
		wake = min(wake, b.lackingAt)
	}
	return wake
}

// closeCompanion ends a companion, which has to stop all that it does under this agent's terms.
func (r *Registry) closeCompanion(k *Candidacy, reason string) {
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		if c := r.races[name]; c.deed.by == k {
			k.say(api.CampaignEvent{Type: api.CampaignRevoked, Election: string(name), Term: uint64(c.deed.term),
				StopByBoottimeNS: int64(c.deed.until), Reason: reason, Change: c.change})
		}
	}
	k.end()
}

// review applies what the companions report, and whether they are connected. If a check fails, this host
// steps down at once, unless LastResort. If a companion is missing, the host waits: it may soon be back.
func (r *Registry) review() {
	lacking := false
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		c := r.races[name]
		if c.term != 0 && c.why == "" {
			if why, _ := r.beside.failing(name); why != "" && !r.beside.LastResort(name) {
				r.dismiss(c, election.Reason(why))
			}
			lacking = lacking || r.beside.lacks(name)
		}
		r.offerBest(c)
		r.tidy(c)
	}
	if r.beside.lacking != lacking {
		r.beside.lacking, r.beside.lackingAt = lacking, 0
	}
}

// Companions returns the processes that act beside the leader on this host.
func (r *Registry) Companions() *Companions { return &r.beside }
