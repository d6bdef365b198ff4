// Package actors knows which programs of this host are candidates, which of them acts, and which
// receipts must come before a term may be released.
//
// It guarantees that in each election at most one program of the host is notified that it is
// elected. That is the one with the highest priority, and among equals the oldest. A program is notified of
// the end of each term in which it was elected. The elector gets the receipt for a term only once
// the program that acted has stopped, by its own report or by proof. The lines that wait for a slow
// reader are bounded: a newer renewal replaces an older one, and all other lines are kept. If too
// many of them wait, the candidacy ends.
//
// It does not guarantee that a program stops when it is notified. The time is passed as an
// argument, and no call waits. One goroutine owns a registry. Other goroutines may use only what
// the comments on Candidacy, Sockets and Counters name.
package actors

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	// MaxCandidacies bounds the candidacies of one agent.
	MaxCandidacies = 1000
	// MaxPerElection bounds the candidacies of one election on one agent.
	MaxPerElection = 64
	// If this host leads more elections than many, programs are sent fewer renewals, since writing
	// the line costs more than the renewal itself.
	many = 100
)

// ReasonStopped is why a term ends after its program has reported, without being asked, that it stopped.
const ReasonStopped election.Reason = "the program has stopped"

// Config is a registry's settings.
type Config struct {
	Settings
	// Step is how much longer a lease must become before the program is sent a line. StepOfMany
	// replaces Step while the host leads more elections than the constant many.
	Step, StepOfMany time.Duration
	// Authority is part of each line that lets a program act.
	Authority string
	// MaxCandidacies is how many candidacies there may be; 0: the constant MaxCandidacies. Some of them
	// are reserved for root and the agent's own user. MaxOfUser is how many any other user may
	// have; 0: any number.
	MaxCandidacies, MaxOfUser int
	// NewID draws the random ID of a candidacy. An ID can't be guessed, and none may come twice.
	NewID func() string
	// Past is what an earlier life of this agent left, sorted by election. The registry continues
	// from there.
	Past []Past
	// Record puts on record which program acts in an election, and RecordCompanion which companion does.
	// They are called before the process is notified of the term in Told. Nil: nothing is recorded.
	Record, RecordCompanion func(election.Name, record.Program)
}

// Request is a program that wants to be a candidate.
type Request struct {
	Election election.Name
	Priority *int // nil: the agent's priority
	// MaxPriority is the highest priority that the candidacy may have; nil: any.
	MaxPriority *int
	Meta        string
	UID         uint32
	Own         bool // the user is root or the agent's own user
	PID         int32
	Program     record.Program // identifies the program when it resumes; zero where the system can't identify it
	// Companion is what a companion reports of itself, with at least one election; nil: the program
	// is a candidate.
	Companion *api.Companion
}

// Registry holds every candidacy of one host.
//
// Invariant: a candidacy is in byID while its connection is open, or while a receipt of its program
// may still end a term early.
type Registry struct {
	cfg      Config
	races    map[election.Name]*race
	rivals   map[*race]struct{} // races in which a better candidate waits
	byID     map[string]*Candidacy
	waits    []*wait
	absent   []*Candidacy // programs that may resume; the next Advance drops those that have resumed or no longer can
	led      int          // races that this host leads
	order    uint64       // the order of the newest candidacy
	inputs   []election.Input
	closed   bool
	Counters Counters
	shares   shares

	beside Companions
}

// New returns a registry with the host's own candidacy, if there is one.
func New(c Config) *Registry {
	c.MaxCandidacies = cmp.Or(c.MaxCandidacies, MaxCandidacies)
	r := &Registry{cfg: c, races: map[election.Name]*race{}, rivals: map[*race]struct{}{}, byID: map[string]*Candidacy{}, shares: newShares(c.MaxOfUser)}
	r.beside = Companions{cfg: &r.cfg, unattended: map[*race]struct{}{}}
	if c.Host {
		r.standHost()
	}
	for _, p := range c.Past {
		r.restore(p)
	}
	for _, name := range slices.Sorted(maps.Keys(r.races)) {
		r.offerBest(r.races[name])
		r.tidy(r.races[name])
	}
	r.review()
	return r
}

// Stand adds a candidacy or a companion. The error is a *api.ErrorDetail.
func (r *Registry) Stand(now election.Instant, q Request) (*Candidacy, error) {
	if r.closed {
		return nil, &api.ErrorDetail{Code: api.CodeUnavailable, Message: "the agent stops"}
	}
	if q.Companion != nil {
		return r.join(now, q)
	}
	if refused := r.crowded(now, q); refused != nil {
		return nil, refused
	}
	r.order++
	k := newCandidacy(r.cfg.NewID(), q, r.order)
	if k.stated = q.Priority != nil; k.stated {
		k.priority = *q.Priority
	}
	r.prioritize(k)
	r.byID[k.id] = k
	c := r.enlist(k)
	k.say(api.CampaignEvent{Type: api.CampaignCandidate})
	r.offerBest(c)
	r.considerRival(now, c)
	return k, nil
}

// enlist counts a candidacy, and adds it to its race.
func (r *Registry) enlist(k *Candidacy) *race {
	r.shares.of[k.request.UID]++
	r.Counters.Candidacies.Add(1)
	c := r.race(k.election)
	c.candidates = append(c.candidates, k)
	slices.SortStableFunc(c.candidates, better)
	return c
}

// better sorts the candidacies of one election, the best first.
func better(a, b *Candidacy) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.order, b.order))
}

// End ends a candidacy whose connection was closed. If its program acts, this host steps down. The
// term is released once it is certain that the program has stopped.
func (r *Registry) End(id string) {
	k := r.byID[id]
	if k == nil || k.ended {
		return
	}
	if k.companion != nil {
		r.leave(k)
		return
	}
	r.remove(k)
	c := r.race(k.election)
	if c.acting == k {
		r.dismiss(c, election.ReasonWithdrawn)
	} else {
		r.offerBest(c)
		r.dropRival(c)
	}
	r.forget(k)
	r.tidy(c)
}

// remove ends a candidacy, but not the leadership of its program.
func (r *Registry) remove(k *Candidacy) {
	k.ended = true
	k.end()
	r.shares.end(k.request.UID)
	r.Counters.Candidacies.Add(-1)
	c := r.race(k.election)
	c.candidates = slices.DeleteFunc(c.candidates, func(o *Candidacy) bool { return o == k })
}

// forget drops a candidacy if it has ended and no receipt of its program is awaited.
func (r *Registry) forget(k *Candidacy) {
	if c := r.races[k.election]; k.ended && k.wait == nil && (c == nil || c.acting != k) {
		delete(r.byID, k.id)
	}
}

// Take returns the inputs for the elector, in their order.
func (r *Registry) Take() []election.Input {
	inputs := r.inputs
	r.inputs = nil
	return inputs
}

// List describes every candidacy that has not ended or may resume, the oldest first.
func (r *Registry) List() []api.Campaign {
	all := []api.Campaign{}
	byAge := func(a, b *Candidacy) int { return cmp.Compare(a.order, b.order) }
	for _, k := range slices.SortedFunc(maps.Values(r.byID), byAge) {
		if k.ended && !k.absent {
			continue
		}
		one := k.describe()
		if c := r.races[k.election]; c != nil && c.acting == k {
			one.Term = uint64(c.term)
		}
		all = append(all, one)
	}
	return all
}

// Close ends every candidacy, and accepts no new ones.
func (r *Registry) Close(reason string) {
	r.closed = true
	for _, k := range r.byID {
		k.absent = false
		if k.ended {
			continue
		}
		if k.companion != nil {
			r.closeCompanion(k, reason)
			continue
		}
		over := api.CampaignEvent{Type: api.CampaignRevoked, Reason: reason}
		if c := r.races[k.election]; c != nil && c.acting == k {
			over.Term, over.StopByBoottimeNS = uint64(c.term), int64(c.until)
		} else if k.wait != nil {
			over.Term, over.StopByBoottimeNS = uint64(k.wait.term), int64(k.wait.stopBy)
		}
		k.say(over)
		k.end()
	}
}

// best returns the best candidacy; nil: there is none, or the host may not be a candidate.
func (r *Registry) best(c *race) *Candidacy {
	if len(c.candidates) == 0 || r.beside.Unable(c.name) != "" && !r.beside.LastResort(c.name) {
		return nil
	}
	return c.candidates[0]
}
