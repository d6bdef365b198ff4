package actors

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// companionGrace is how long a host leads on without the companion that it needs: one that dies
// is back within moments.
const companionGrace = 5 * time.Second

// Companions are what acts beside the leader of this host, and what the host needs of them.
type Companions struct {
	cfg        *Config
	connected  []*Candidacy
	unattended map[*race]struct{} // races with a deed whose companion has gone
	lacking    bool               // this host leads without a companion that it needs
	lackingAt  election.Instant   // when it hands over therefore; 0: not known yet
}

// deed is what a companion may still do in one election.
//
// A companion's end proves that its processes have ended, and not that what a run of it has set up
// is undone. So a deed outlives its companion: it ends by the receipt of a companion that acts in
// the election, or once the last deadline has passed (H6). The deed goes by what the companion was
// sent, whatever the configuration says meanwhile.
//
// Invariant: term is 0 unless a companion was sent a term and has not stopped since.
type deed struct {
	term    election.Term
	until   election.Instant // the newest deadline that it was sent
	by      *Candidacy       // the companion that can give the receipt; nil: none is here
	wait    *wait            // the term that waits for the receipt
	program record.Program   // the companion that was sent the term, as recorded; it outlives the deed
	spent   election.Term    // a higher term than this one was asked for, since this one can't be sent again
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

// Report replaces what a companion reports of itself, or returns a *api.ErrorDetail.
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

// accompany has a companion act where this host leads, and applies what it reports.
func (r *Registry) accompany(now election.Instant, k *Candidacy) {
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		r.attend(now, r.races[name], k)
	}
	k.companion.Holds = nil // they count once
	r.review()
}

// occupied returns the refusal of a companion where another one acts.
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

// companionOf returns the companion that acts in an election; nil: there is none.
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

// attend has a companion act in an election that this host leads, or stop what it or one before it
// has begun there.
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
	case d.spent < c.term: // this term was sent to another process (K4d)
		d.spent = c.term
		r.inputs = append(r.inputs, election.Overtake{Election: c.name})
	}
}

// sameProcess reports whether a companion is the process that is on record.
func (k *Candidacy) sameProcess(p record.Program) bool {
	q := k.program
	return p.Started != 0 && p.PID == q.PID && p.Started == q.Started && p.Space == q.Space
}

// begin has a companion act under the term that this host leads.
func (b *Companions) begin(c *race, k *Candidacy) {
	stopped := c.deed.program.Stopped
	c.deed = deed{by: k, program: k.program}
	c.deed.program.Stopped = stopped
	delete(b.unattended, c)
	b.send(c, api.CampaignElected)
}

// sendCompanion sends the deadline of the term that this host leads, once the term is on record
// (K1).
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

// lead has the companion act under a new term of this host, if there is one.
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

// revokeCompanion sends the companion the end of the leadership that waits for it.
func (c *race) revokeCompanion() {
	line := c.deed.wait.revoked()
	line.Change = c.deed.wait.change
	c.deed.by.say(line)
}

// endDeed records that nothing of a companion acts in an election any more.
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

// leave drops a companion whose connection was closed. What it has begun has no end yet.
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

// companionStopped takes a companion's receipt: nothing that it has run acts in the election any
// more, and what acted was undone. Unasked, it gives up the leadership; why is its reason.
func (r *Registry) companionStopped(k *Candidacy, name election.Name, term election.Term, why election.Reason) {
	c := r.races[name]
	if c == nil || c.deed.by != k || c.deed.term == 0 || term != 0 && term < c.deed.term {
		return // it is late, or it names a term before one that it was sent since
	}
	asked := c.deed.wait != nil
	r.endDeed(c, &r.Counters.ByReceipt)
	if !asked && c.term != 0 && c.why == "" {
		c.given = why
		if why == "" {
			why = ReasonStopped
		}
		r.inputs = append(r.inputs, election.Resign{Election: name}) // others first: it would fail here again
		r.dismiss(c, why)                                            // also where there are none
	}
}

// Change sends the companion that acts in an election what its watch would show.
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

// advanceCompanions ends the deeds of companions that have gone once their last deadline has
// passed, and hands over what was led for too long without the companion that it needs.
func (r *Registry) advanceCompanions(now election.Instant) {
	for c := range r.beside.unattended {
		if now >= c.deed.until {
			r.endDeed(c, &r.Counters.ByDeadline)
		}
	}
	if !r.beside.lacking {
		return
	}
	if r.beside.lackingAt == 0 {
		r.beside.lackingAt = now.Add(companionGrace)
	}
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

// wakeCompanions is when advanceCompanions has something to do.
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

// closeCompanion ends a companion: it has to stop what it does under this agent's terms.
func (r *Registry) closeCompanion(k *Candidacy, reason string) {
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		if c := r.races[name]; c.deed.by == k {
			k.say(api.CampaignEvent{Type: api.CampaignRevoked, Election: string(name), Term: uint64(c.deed.term),
				StopByBoottimeNS: int64(c.deed.until), Reason: reason, Change: c.change})
		}
	}
	k.end()
}

// review applies what the companions report, and whether they are there. What a failing check
// forbids is handed over; a companion that is missing may be back in a moment.
func (r *Registry) review() {
	lacking := false
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		c := r.races[name]
		if c.term != 0 && c.why == "" {
			if why := r.beside.failing(name); why != "" {
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

// Companions returns what acts beside the leader of this host.
func (r *Registry) Companions() *Companions { return &r.beside }
