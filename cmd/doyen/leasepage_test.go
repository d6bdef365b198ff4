package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client"
)

// pages are the lease pages of three agents on this machine, with one clock.
type pages struct {
	names  []string
	leases []*client.Lease
	checks atomic.Uint64
}

func openPages(t *testing.T, m *mesh) *pages {
	t.Helper()
	p := &pages{names: []string{"a", "b", "c"}}
	for _, name := range p.names {
		m.until(t, "agent "+name+" keeps a page", func(context.Context) bool {
			l, err := client.OpenLease(client.LeasePath(m.socket(name), "default"))
			if err != nil {
				return false
			}
			p.leases = append(p.leases, l)
			return true
		})
	}
	return p
}

// together looks for two pages that hold a lease at the same time: one page's lease was valid in the same term
// both before and after the other one's.
func (p *pages) together(t *testing.T) {
	for i, l := range p.leases {
		for j, other := range p.leases {
			term, _, before := l.Check()
			theirs, left, ok := other.Check()
			again, _, after := l.Check()
			if i != j && before && ok && after && term == again {
				t.Errorf("%s is inside its lease of term %d, and %s of term %d, with %s left", p.names[i], term, p.names[j], theirs, left)
			}
		}
	}
	p.checks.Add(1)
}

// leads waits until the page of another agent than `not` holds a lease, and returns that agent's name.
func (p *pages) leads(t *testing.T, m *mesh, not string) string {
	t.Helper()
	var name string
	m.until(t, "another page than "+not+"'s holds a lease", func(context.Context) bool {
		for i, l := range p.leases {
			if p.names[i] != not && l.Valid() {
				name = p.names[i]
				return true
			}
		}
		return false
	})
	return name
}

// Leaders resign, hand over, freeze and are killed. Two pages must never hold a lease at once, and a reader
// goes on through all of this.
func TestNoTwoLeasePagesHoldALeaseAtOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("needs Linux's loopback addresses and some seconds for real agents: not with -short; CI runs it")
	}
	m := newMesh(t)
	m.form(t)
	p := openPages(t, m)
	var stop atomic.Bool
	var watching sync.WaitGroup
	watching.Go(func() {
		often := time.NewTicker(50 * time.Microsecond)
		defer often.Stop()
		for !stop.Load() && !t.Failed() {
			<-often.C
			p.together(t)
		}
	})
	defer watching.Wait()
	defer stop.Store(true)
	leader := p.leads(t, m, "")
	if _, err := m.client(leader).Resign(t.Context(), "default"); err != nil {
		t.Error(err)
	}
	leader = p.leads(t, m, leader)

	frozen := m.agents[leader].Process
	if err := frozen.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := p.leads(t, m, leader)
	if err := frozen.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	leader = next

	killed := m.agents[leader]
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // returns an error, because the process was killed
	next = p.leads(t, m, leader)
	m.start(t, leader)
	m.lead(t, leader) // the same reader follows the page of the new life
	if got := p.leads(t, m, next); got != leader {
		t.Errorf("the page of %s holds a lease, %s leads", got, leader)
	}
	if n := p.checks.Load(); n < 100 {
		t.Errorf("only %d checks", n)
	}
}

// A program that was elected finds its token on the page, which loses the lease when the program withdraws. The
// page is removed with its election.
func TestAProgramFindsItsTokenOnThePage(t *testing.T) {
	t.Parallel()
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("needs Linux's loopback addresses and a real agent: not with -short; CI runs it")
	}
	m := newMesh(t)
	m.form(t)
	path := client.LeasePath(m.socket("a"), "payments")
	campaign, err := m.client("a").Campaign(t.Context(), "payments")
	if err != nil {
		t.Fatal(err)
	}
	defer campaign.Close()
	var lease *client.Lease
	m.until(t, "the page is there", func(context.Context) bool {
		lease, err = client.OpenLease(path)
		return err == nil
	})
	defer lease.Close()
	m.until(t, "the page holds the program's token", func(context.Context) bool {
		token, _, ok := lease.Check()
		return ok && token == campaign.Token()
	})
	if err := campaign.Close(); err != nil {
		t.Fatal(err)
	}
	m.until(t, "the page holds no lease", func(context.Context) bool { return !lease.Valid() })
	m.until(t, "the page is gone", func(context.Context) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
}
