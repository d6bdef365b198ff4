package actors

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/offer"
)

// maxWaiting bounds the lines that wait until a program reads them.
const maxWaiting = 64

// maxWaitingBeside is maxWaiting for a companion, which acts in many elections.
const maxWaitingBeside = 4096

// Candidacy is one program that is a candidate, the host itself, or a companion. Other goroutines than the
// registry's may call ID and Election. One other goroutine may call Ready and Take.
type Candidacy struct {
	id       string
	election election.Name
	priority int
	order    uint64 // lower for older candidacies; the host's is the highest
	request  Request
	since    time.Time // wall clock, for people
	host     bool
	stated   bool // the program has stated its priority; else the agent's priority counts

	companion *api.Companion // what the companion reports of itself; nil: this is a candidate, not a companion

	// Owned by the registry.
	ended      bool          // its connection is closed, or the program was notified that the candidacy has ended
	leaves     bool          // the candidacy ends with the next revoked line
	hasStopped bool          // the program has sent the receipt for the term it leads
	newest     election.Term // the newest term in which it was elected
	before     bool          // it was elected in an earlier leadership too
	wait       *wait         // the term whose release waits until the program has stopped
	unanswered int           // terms whose deadline passed without a receipt

	program  record.Program   // as recorded for the next life
	absent   bool             // an earlier life elected the program, which has not resumed yet; an absent candidacy counts as ended
	resumeBy election.Instant // until when an absent program may act
	earlier  []uint64         // inodes of the connections that the program had with earlier lives

	ready chan struct{}

	mu      sync.Mutex
	waiting []api.CampaignEvent
	over    bool
}

func newCandidacy(id string, q Request, order uint64) *Candidacy {
	k := &Candidacy{id: id, election: q.Election, order: order, request: q, since: time.Now().UTC(),
		program: q.Program, ready: make(chan struct{}, 1)}
	k.program.Campaign, k.program.UID = id, q.UID
	return k
}

// ID names the candidacy in its receipts.
func (k *Candidacy) ID() string { return k.id }

func (k *Candidacy) Election() election.Name { return k.election }

func (k *Candidacy) describe() api.Campaign {
	d := api.Campaign{Campaign: k.id, Election: string(k.election), Priority: k.priority, Meta: k.request.Meta,
		PID: int(k.request.PID), UID: int(k.request.UID), Since: k.since}
	if k.companion != nil {
		d.Role, d.Election = api.RoleCompanion, strings.Join(k.companion.Elections, " ")
	}
	if k.wait != nil {
		d.Term = uint64(k.wait.term)
	}
	return d
}

// say adds a line for the program. If the last waiting line of the election reports a renewal, the
// new line replaces it.
func (k *Candidacy) say(e api.CampaignEvent) {
	if e.Campaign = k.id; e.Election == "" {
		e.Election = string(k.election)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	if i := k.lastOf(e.Election); i >= 0 && k.waiting[i].Type == api.CampaignRenewed {
		k.waiting = slices.Delete(k.waiting, i, i+1)
	}
	k.waiting = append(k.waiting, e)
	most := maxWaiting
	if k.companion != nil {
		most = maxWaitingBeside
	}
	k.over = len(k.waiting) >= most
	offer.To(k.ready, struct{}{})
}

// lastOf returns the index of the election's last waiting line; -1: it has none.
func (k *Candidacy) lastOf(name string) int {
	for i := len(k.waiting) - 1; i >= 0; i-- {
		if k.waiting[i].Election == name {
			return i
		}
	}
	return -1
}

// end closes the candidacy's lines: no more lines follow.
func (k *Candidacy) end() {
	if k.host {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	offer.To(k.ready, struct{}{})
}

// Ready signals that there are lines to take.
func (k *Candidacy) Ready() <-chan struct{} { return k.ready }

// Take returns the waiting lines, and whether more can follow.
func (k *Candidacy) Take() (lines []api.CampaignEvent, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lines, k.waiting = k.waiting, nil
	return lines, !k.over
}
