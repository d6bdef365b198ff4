package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// watcher follows the agents of a cluster, and wakes those who wait for
// something to be seen.
type watcher struct {
	ctx     context.Context
	cluster *hosts.Cluster
	running sync.WaitGroup

	mu       sync.Mutex
	seen     *observe.Elections
	followed map[string]bool // elections
	exits    []hosts.Exit
	notes    []note        // who said what, bounded
	moved    chan struct{} // closed and replaced whenever something was seen
}

// note is a line of the account of what was seen.
type note struct {
	at   election.Instant
	text string
}

const (
	// recent is how many lines of the account a failure shows.
	recent   = 24
	maxNotes = 4096
	pollBase = 50 * time.Millisecond
	// deliverySlack is how late what an agent stamped in time may arrive here.
	deliverySlack = 700 * time.Millisecond
)

func watch(ctx context.Context, cluster *hosts.Cluster, exits <-chan hosts.Exit) *watcher {
	c := cluster.Hosts()[0].Config()
	lease := c.Lease
	if !c.Quorum {
		lease = 0
	}
	w := &watcher{ctx: ctx, cluster: cluster, seen: observe.NewElections(lease), followed: map[string]bool{}, moved: make(chan struct{})}
	for _, h := range cluster.Hosts() {
		w.seen.Started(h.Name(), boottime.Now())
	}
	w.running.Go(func() {
		for {
			select {
			case e := <-exits:
				w.tell(func() {
					w.exits = append(w.exits, e)
					w.seen.Exited(e.Host, e.At)
					w.note(e.At, "%s: its process ended, %s", e.Host, e.How)
				})
			case <-ctx.Done():
				return
			}
		}
	})
	w.follow(string(election.Default))
	return w
}

// follow begins to follow an election at all hosts.
func (w *watcher) follow(name string) {
	w.mu.Lock()
	known := w.followed[name]
	w.followed[name] = true
	w.mu.Unlock()
	if known {
		return
	}
	all := w.cluster.Hosts()
	o := observe.Options{Election: name, Poll: max(pollBase, time.Duration(len(all))*10*time.Millisecond),
		Retry: time.Duration(len(all)) * time.Millisecond}
	for _, h := range all {
		o.Sources = append(o.Sources, observe.Source{Agent: h.Name(), Socket: h.Config().Socket})
	}
	events := observe.Follow(w.ctx, o)
	w.running.Go(func() {
		for e := range events {
			w.apply(e)
		}
	})
}

func (w *watcher) apply(e observe.Event) {
	w.tell(func() {
		switch v := e.(type) {
		case observe.Changed:
			h, _ := w.cluster.Host(v.Agent)
			v.Change.BoottimeNS = int64(h.Real(election.Instant(v.Change.BoottimeNS)))
			if s := v.Change.Snapshot; s != nil && s.ValidUntilBoottimeNS != 0 {
				s.ValidUntilBoottimeNS = int64(h.Real(election.Instant(s.ValidUntilBoottimeNS)))
			}
			w.said(v)
			e = v
		case observe.Polled:
			h, _ := w.cluster.Host(v.Agent)
			if v.Election.ValidUntilBoottimeNS != 0 {
				v.Election.ValidUntilBoottimeNS = int64(h.Real(election.Instant(v.Election.ValidUntilBoottimeNS)))
			}
			e = v
		}
		w.seen.Apply(e)
	})
}

func (w *watcher) said(v observe.Changed) {
	c := v.Change
	who := "nobody leads"
	switch {
	case c.IsLeader:
		who = "it leads"
	case c.Leader != nil:
		who = c.Leader.Name + " leads"
	}
	of := ""
	if c.Election != string(election.Default) {
		of = " " + c.Election
	}
	because := ""
	if c.Reason != "" {
		because = " (" + c.Reason + ")"
	}
	w.note(election.Instant(c.BoottimeNS), "%s%s: %s, term %d%s", v.Agent, of, who, c.Term, because)
}

// note is called with the lock held.
func (w *watcher) note(at election.Instant, format string, args ...any) {
	if len(w.notes) == maxNotes {
		w.notes = slices.Delete(w.notes, 0, maxNotes/4)
	}
	w.notes = append(w.notes, note{at, fmt.Sprintf(format, args...)})
}

// remark adds a line of the script's own to the account.
func (w *watcher) remark(at election.Instant, format string, args ...any) {
	w.tell(func() { w.note(at, format, args...) })
}

// account tells the last n things that were seen, all if n is 0, by their
// instants, counted back from now.
func (w *watcher) account(n int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	notes := slices.Clone(w.notes)
	slices.SortStableFunc(notes, func(a, b note) int { return int(a.at - b.at) })
	if n > 0 && len(notes) > n {
		notes = notes[len(notes)-n:]
	}
	now := boottime.Now()
	var s strings.Builder
	s.WriteString("what was seen, in ms before now:\n")
	for _, l := range notes {
		fmt.Fprintf(&s, "%9.1f  %s\n", float64(now.Sub(l.at))/float64(time.Millisecond), l.text)
	}
	return s.String()
}

// tell changes what is known, and wakes those who wait.
func (w *watcher) tell(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.moved)
	w.moved = make(chan struct{})
}

// look lets f read what is known.
func (w *watcher) look(f func(*observe.Elections)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.seen)
}

// wait returns once nothing is followed any more; the context must have ended.
func (w *watcher) wait() { w.running.Wait() }

// ask polls an agent now, so that the deadline it told last is known.
func (w *watcher) ask(h *hosts.Host) {
	if h.Status() != hosts.Running {
		return
	}
	w.mu.Lock()
	var names []string
	for name := range w.followed {
		names = append(names, name)
	}
	w.mu.Unlock()
	c := client.New(h.Config().Socket)
	defer c.Close()
	for _, name := range names {
		if p, err := observe.Ask(w.ctx, c, h.Name(), name); err == nil {
			w.apply(p)
		}
	}
}
