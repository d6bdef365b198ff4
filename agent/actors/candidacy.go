package actors

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// maxWaiting bounds the lines that wait for one reader.
const maxWaiting = 64

// maxWaitingBeside bounds those for a companion, which acts in many elections.
const maxWaitingBeside = 4096

// Candidacy is one program that is a candidate, or the host itself. Other goroutines may use
// ID, Election, Ready and Take; the last two are for one of those goroutines.
type Candidacy struct {
	id       string
	election election.Name
	priority int
	order    uint64
	request  Request
	since    time.Time // wall clock, for people
	host     bool
	stated   bool // its priority is its own, and not the agent's

	companion *api.Companion // what it reports of itself; nil: it is a candidate

	// Owned by the registry.
	ended      bool          // its connection is closed, or the program was notified of the end
	leaves     bool          // the candidacy ends with the next revoked line
	hasStopped bool          // the program has sent the receipt for the term it leads
	newest     election.Term // the newest term in which it was elected
	before     bool          // it was elected in an earlier leadership too
	wait       *wait         // the term that waits for the program to stop
	unanswered int           // terms whose deadline passed without a receipt

	program  record.Program   // as recorded for the next life
	absent   bool             // an earlier life elected the program, which has not resumed yet; it counts as ended
	resumeBy election.Instant // of an absent program: until then it may act
	earlier  []uint64         // inodes of its connections with earlier lives

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

// say adds a line for the program. The line replaces the one before it if that is a renewal
// which the program has not read yet.
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
	k.signal()
}

// lastOf returns which waiting line is the last of the election; -1: none is.
func (k *Candidacy) lastOf(name string) int {
	for i := len(k.waiting) - 1; i >= 0; i-- {
		if k.waiting[i].Election == name {
			return i
		}
	}
	return -1
}

// end closes the lines: no more follow.
func (k *Candidacy) end() {
	if k.host {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.signal()
}

func (k *Candidacy) signal() {
	select {
	case k.ready <- struct{}{}:
	default:
	}
}

// Ready has an element when there are lines to take.
func (k *Candidacy) Ready() <-chan struct{} { return k.ready }

// Take returns the lines that wait, and whether more can follow.
func (k *Candidacy) Take() (lines []api.CampaignEvent, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lines, k.waiting = k.waiting, nil
	return lines, !k.over
}
