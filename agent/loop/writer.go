package loop

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
)

// Writer makes states durable on its own goroutine, so that a slow disk delays only messages that
// depend on them. The elector has at most one write in progress, so neither channel fills up.
type Writer struct {
	disk    disk
	logger  *slog.Logger
	observe func(time.Duration)

	requests chan election.Persist
	results  chan election.Input // Persisted or PersistFailed for each request; Barred once, after a failure
	failure  atomic.Pointer[string]
	taken    *store.TakenError // another process writes to the directory, so this one never writes to it again; nil: none does
	barred   bool              // the elector has been notified of taken
}

func NewWriter(d disk, observe func(time.Duration), logger *slog.Logger) *Writer {
	return &Writer{
		disk: d, logger: logger, observe: observe,
		requests: make(chan election.Persist, 1), results: make(chan election.Input, 2),
	}
}

// Run writes until ctx ends. It finishes a write in progress.
func (w *Writer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-w.requests:
			w.results <- w.write(p)
			if why := w.bar(); why != nil {
				w.results <- *why
			}
		}
	}
}

func (w *Writer) write(p election.Persist) election.Input {
	began := time.Now()
	err := w.disk.Write(p)
	w.observe(time.Since(began))
	before := w.failure.Load()
	if err != nil {
		w.taken, _ = errors.AsType[*store.TakenError](err)
		text := err.Error()
		if before == nil || *before != text {
			w.logger.Error("the state can't be written; this agent grants no votes until it can", "err", err)
		}
		w.failure.Store(&text)
		return election.PersistFailed{Write: p.Write}
	}
	if before != nil {
		w.logger.Info("the state can be written again")
		w.failure.Store(nil)
	}
	return election.Persisted{Write: p.Write}
}

// bar returns, only once, the input that reports that another process writes to the data directory.
func (w *Writer) bar() *election.Barred {
	if w.taken == nil || w.barred {
		return nil
	}
	w.barred = true
	return &election.Barred{Code: warnShared, Detail: w.taken.Error()}
}

// problem returns why the last write failed; empty if it succeeded.
func (w *Writer) problem() string {
	return *cmp.Or(w.failure.Load(), new(string))
}

// lateness holds the times that show whether this agent is late. The elector decides what that means.
type lateness struct {
	due          election.Instant // when the loop should be woken; Never: it does not have to be
	writingSince election.Instant // when the write in progress was requested; Never: there is none
	toldAt       election.Instant // when the elector was last notified
	noted        election.Instant // the value of due at the last pause that is in the history
}

// doubt notifies the elector how late the timer, the loop or a write is, if that is more than an
// eighth of the lease. It does so at most once in each eighth of a lease.
func (l *Loop) doubt(now election.Instant) {
	by, worth := max(now.Sub(l.due), now.Sub(l.writingSince)), cmp.Or(l.picture.Load().Status.Roster.Lease(), l.Lease)/8
	if by <= worth || now.Sub(l.toldAt) < worth {
		return
	}
	l.toldAt = now
	l.feed(now, election.Late{By: by})
}
