// Package pages keeps the lease pages of one agent: a file for each election, in a directory
// beside the agent's socket. By these files programs check for themselves whether the agent
// leads (see package leasepage).
//
// It guarantees that the pages of an earlier process run are wiped before Open returns, except
// the pages that this process run goes on with. When Publish returns, every page shows what the
// status shows, or nothing. A page that can't be kept is missing, is reported as a problem, and
// harms nothing else.
//
// It does not guarantee that Publish never waits for a disk: making a file on a disk, or
// storing to it, may take long. So the socket's directory should be in memory, as /run is. In a
// cluster without quorum nobody holds a lease, and the pages show none.
package pages

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/internal/base/leasepage"
	"github.com/doyen-election/doyen/internal/base/offer"
)

const (
	// retryAfter is the time until a page that could not be made is tried again.
	retryAfter = 10 * time.Second
	// mostMade bounds the pages that one Publish makes, so that it does not delay a heartbeat.
	mostMade = 8
)

// Keeper keeps the pages. Its methods are for one goroutine. The zero value keeps no pages. Close accepts nil.
type Keeper struct {
	dir     string
	boot    election.LineageID
	lock    *os.File // the directory's lock; nil: no page can be kept
	ready   chan struct{}
	entries []entry // in the order of the status's contests: sorted by election
	problem string  // what went wrong in Open; empty: nothing
}

// entry is one election's page.
type entry struct {
	election election.Name
	page     *leasepage.Writer      // nil: the page is missing, or not made yet
	written  *elector.ContestStatus // the status that the page shows; nil: not known
	problem  error                  // why the page could not be made; nil: no error
	retryAt  election.Instant
}

// Open takes the directory of the agent's pages and wipes what an earlier process run left
// there. It adopts the pages of the elections in led, which this process run goes on leading:
// programs that have mapped such a page see no end of the lease. Open always returns a Keeper. If
// that Keeper keeps no pages, Problem is the reason.
func Open(dir string, boot election.LineageID, led map[election.Name]bool) *Keeper {
	k := &Keeper{dir: dir, boot: boot, ready: make(chan struct{}, 1)}
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

// Problem is why pages are missing; empty: no page is missing.
func (k *Keeper) Problem() string {
	if k.problem != "" {
		return k.problem
	}
	for _, e := range k.entries {
		if e.problem != nil {
			return fmt.Sprintf("a lease page is missing: %v; trying again every %s", e.problem, retryAfter)
		}
	}
	return ""
}

// Ready has an element when Publish should be called again, since it may have more pages to make.
func (k *Keeper) Ready() <-chan struct{} { return k.ready }

// Publish writes what the status shows of each election to the election's page, unless the page shows that
// already. It makes the pages of new elections, and removes those of elections that the status lacks.
func (k *Keeper) Publish(now election.Instant, s *elector.Status) {
	if k.lock == nil {
		return
	}
	if !k.matches(s.Contests) {
		k.arrange(s.Contests)
	}
	made := 0
	for i := range k.entries {
		e, c := &k.entries[i], s.Contests[i]
		if e.page == nil && now >= e.retryAt && made < mostMade {
			made++
			k.create(now, e)
		}
		if e.page == nil || e.written == c {
			continue
		}
		term, deadline := election.Term(0), election.Instant(0)
		if s.Quorum.Enabled && c.State == elector.Leading && c.Leader == s.Self {
			term, deadline = c.Term, c.ValidUntil
		}
		if err := e.page.Set(uint64(term), int64(deadline)); err != nil {
			e.fail(now, err)
			continue
		}
		e.written = c
	}
	if made == mostMade {
		offer.To(k.ready, struct{}{})
	}
}

func (k *Keeper) create(now election.Instant, e *entry) {
	page, err := leasepage.Create(k.dir, string(e.election), uint64(k.boot))
	if err != nil {
		e.fail(now, err)
		return
	}
	*e = entry{election: e.election, page: page}
}

func (e *entry) fail(now election.Instant, err error) {
	*e = entry{election: e.election, problem: err, retryAt: now.Add(retryAfter)}
}

// matches reports whether the entries are exactly those of the status's elections.
func (k *Keeper) matches(contests []*elector.ContestStatus) bool {
	return slices.EqualFunc(k.entries, contests, func(e entry, c *elector.ContestStatus) bool {
		return e.written == c || e.election == c.Election
	})
}

// arrange makes the entries match the status's elections. It ends the leases on the pages of
// all other elections, and removes these pages.
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
		if e.page != nil {
			_ = e.page.Close() // the page now shows no lease; if the file could not be removed, the next start removes it
		}
	}
}

func (k *Keeper) find(name election.Name) int {
	return slices.IndexFunc(k.entries, func(e entry) bool { return e.election == name })
}

// Close ends every lease that a page shows, and removes the pages. Publish must not be called
// afterwards.
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
	return errors.Join(errs, k.lock.Close())
}
