package loop

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/election"
)

// slowDisk ends each write when the test sends its outcome.
type slowDisk struct{ outcome chan error }

func (d slowDisk) Write(election.Persist) error { return <-d.outcome }

func TestV4TheWriterAnswersOnceTheDiskHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := slowDisk{make(chan error)}
		w := NewWriter(disk, func(time.Duration) {}, slog.New(slog.DiscardHandler))
		go w.Run(t.Context())
		for i, outcome := range []error{nil, errors.New("full"), nil} {
			write := uint64(i + 1)
			w.requests <- election.Persist{Write: write}
			synctest.Wait()
			if len(w.results) != 0 {
				t.Fatalf("write %d is answered %+v while it is under way", write, <-w.results)
			}
			disk.outcome <- outcome
			var want election.Input = election.Persisted{Write: write}
			if outcome != nil {
				want = election.PersistFailed{Write: write}
			}
			if got := <-w.results; got != want {
				t.Errorf("write %d, which ended with %v: %#v", write, outcome, got)
			}
		}
	})
}

// If another process writes to the data directory, the elector is barred, and is notified of that once.
func TestAnotherWriterBarsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := slowDisk{make(chan error)}
		w := NewWriter(disk, func(time.Duration) {}, slog.New(slog.DiscardHandler))
		go w.Run(t.Context())
		for write := uint64(1); write <= 2; write++ {
			w.requests <- election.Persist{Write: write}
			disk.outcome <- fmt.Errorf("write state: %w", &store.TakenError{})
			if got := <-w.results; got != (election.PersistFailed{Write: write}) {
				t.Fatalf("write %d: %#v", write, got)
			}
			if write == 1 {
				if b, barred := (<-w.results).(election.Barred); !barred || b.Code != "data_dir_shared" {
					t.Fatalf("%+v", b)
				}
			}
		}
		synctest.Wait()
		if len(w.results) != 0 {
			t.Errorf("told again: %#v", <-w.results)
		}
	})
}
