// Package pages keeps the lease pages of one agent: a file for each election, in a directory
// beside the agent's socket. By these files programs check for themselves whether the agent
// leads (see package leasepage).
//
// It guarantees that the pages of an earlier process run are wiped before Open returns, except
// those that this process run goes on with. When Publish returns, every page shows what the
// status shows, or nothing. Publish opens, makes and removes no file. A page that can't be
// kept is missing, is reported as a problem, and harms nothing else.
//
// It does not guarantee that Publish never waits for a disk: a store to a file on a disk may
// wait. So the socket's directory should be in memory, as /run is. Without a quorum nobody
// holds a lease, and pages show none.
package pages

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// retryAfter is the time until a page that could not be made is tried again.
const retryAfter = 10 * time.Second

// Keeper keeps the pages. One goroutine may call Publish, and another one Run. A nil Keeper
// keeps no pages.
type Keeper struct {
	dir   string
	boot  election.LineageID
	lock  *os.File // of the directory; nil: no page can be kept
	ready chan struct{}
	work  chan struct{}

	// Owned by the goroutine of Publish.
	entries []entry                // in the order of the status's contests: sorted by election
	failed  int                    // how many entries have failed
	ordered map[election.Name]bool // pages that are being made: one at a time for each election

	mu      sync.Mutex
	orders  []order // not started yet
	done    []outcome
	problem string
}

// entry is one election's page.
type entry struct {
	election election.Name
	page     *leasepage.Writer      // nil: there is no page, or not yet
	written  *elector.ContestStatus // what the page shows; nil: not known
	failed   bool
	retryAt  election.Instant
}

// Open takes the directory of the agent's pages and wipes what an earlier process run left
// there. It adopts the pages of elections that this process run goes on leading: programs that
// have mapped them see no end. It always returns a Keeper. If the Keeper keeps nothing,
// Problem is the reason.
func Open(dir string, boot election.LineageID, led map[election.Name]bool) *Keeper {
	k := &Keeper{dir: dir, boot: boot, ordered: map[election.Name]bool{},
		ready: make(chan struct{}, 1), work: make(chan struct{}, 1)}
	lock, err := take(dir)
	if err != nil {
		k.problem = fmt.Sprintf("lease pages are off: %v", err)
		return k
	}
	k.lock = lock
	for _, name := range slices.Sorted(maps.Keys(led)) {
		if page, err := leasepage.Adopt(dir, string(name), uint64(boot)); err == nil {
			k.entries = append(k.entries, entry{election: name, page: page})
		}
	}
	if err := wipe(dir, func(name string) bool { return k.find(election.Name(name)) >= 0 }); err != nil {
		k.problem = fmt.Sprintf("an old lease page could not be removed, and programs may trust it until its lease ends: %v", err)
	}
	return k
}

// Problem is why pages are missing; empty: none is missing.
func (k *Keeper) Problem() string {
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// Ready has an element when Publish should be called again, since there are new pages to write to.
func (k *Keeper) Ready() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.ready
}

// Publish writes what the status has of each election, unless the page shows that already. Run
// makes the pages of new elections.
func (k *Keeper) Publish(now election.Instant, s *elector.Status) {
	if k == nil || k.lock == nil {
		return
	}
	k.collect(now)
	if !k.matches(s.Contests) {
		k.arrange(s.Contests)
	}
	for i := range k.entries {
		e, c := &k.entries[i], s.Contests[i]
		if e.page == nil {
			k.want(now, e)
			continue
		}
		if e.written == c {
			continue
		}
		term, deadline := election.Term(0), election.Instant(0)
		if s.Quorum.Enabled && c.State == elector.Leading && c.Leader == s.Self {
			term, deadline = c.Term, c.ValidUntil
		}
		if err := e.page.Set(uint64(term), int64(deadline)); err != nil {
			e.page, e.written = nil, nil
			k.fail(now, e, err)
			continue
		}
		e.written = c
	}
}

// matches reports whether the entries are exactly those of the status's elections.
func (k *Keeper) matches(contests []*elector.ContestStatus) bool {
	if len(k.entries) != len(contests) {
		return false
	}
	for i := range contests {
		if k.entries[i].written != contests[i] && k.entries[i].election != contests[i].Election {
			return false
		}
	}
	return true
}

// arrange makes the entries match, and has the pages of elections that are gone removed. It
// ends the leases on those pages at once.
func (k *Keeper) arrange(contests []*elector.ContestStatus) {
	before := make(map[election.Name]entry, len(k.entries))
	for _, e := range k.entries {
		before[e.election] = e
	}
	k.entries = make([]entry, len(contests))
	for i, c := range contests {
		k.entries[i] = entry{election: c.Election}
		if e, ok := before[c.Election]; ok {
			k.entries[i] = e
			delete(before, c.Election)
		}
	}
	for _, e := range before {
		if e.failed {
			k.recovered()
		}
		k.retire(e.election, e.page)
	}
}

// want orders a page, unless it is ordered already or has failed a moment ago.
func (k *Keeper) want(now election.Instant, e *entry) {
	if k.ordered[e.election] || e.failed && now < e.retryAt {
		return
	}
	k.ordered[e.election] = true
	k.order(order{election: e.election})
}

func (k *Keeper) order(o order) {
	k.mu.Lock()
	k.orders = append(k.orders, o)
	k.mu.Unlock()
	signal(k.work)
}

// collect adopts the pages that Run has made.
func (k *Keeper) collect(now election.Instant) {
	k.mu.Lock()
	done := k.done
	k.done = nil
	k.mu.Unlock()
	for _, d := range done {
		delete(k.ordered, d.election)
		i := k.find(d.election)
		switch {
		case i < 0:
			k.retire(d.election, d.page) // the election has gone meanwhile
		case d.err != nil:
			k.fail(now, &k.entries[i], d.err)
		default:
			if k.entries[i].failed {
				k.recovered()
			}
			k.entries[i] = entry{election: d.election, page: d.page}
		}
	}
}

// retire ends the lease that a page shows, at once, and has the page removed.
func (k *Keeper) retire(name election.Name, page *leasepage.Writer) {
	if page != nil {
		_ = page.Set(0, 0) // a page that can't be written holds no lease
		k.order(order{name, page})
	}
}

func (k *Keeper) find(name election.Name) int {
	for i := range k.entries {
		if k.entries[i].election == name {
			return i
		}
	}
	return -1
}

func (k *Keeper) fail(now election.Instant, e *entry, err error) {
	if !e.failed {
		e.failed = true
		k.failed++
	}
	e.retryAt = now.Add(retryAfter)
	k.tell(fmt.Sprintf("a lease page is missing: %v; trying again every %s", err, retryAfter))
}

func (k *Keeper) recovered() {
	if k.failed--; k.failed == 0 {
		k.tell("")
	}
}

func (k *Keeper) tell(problem string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = problem
}

// Close ends every lease that a page shows, and removes the pages. Publish and Run must have
// returned, and must not be called afterwards.
func (k *Keeper) Close() error {
	if k == nil || k.lock == nil {
		return nil
	}
	var errs error
	for _, e := range k.entries {
		if e.page != nil {
			errs = errors.Join(errs, e.page.Close())
		}
	}
	for _, o := range k.orders {
		if o.close != nil {
			errs = errors.Join(errs, o.close.Close())
		}
	}
	for _, d := range k.done {
		if d.page != nil {
			errs = errors.Join(errs, d.page.Close())
		}
	}
	return errors.Join(errs, k.lock.Close())
}
