package client

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// LeasePath returns where the agent that listens at the socket keeps the lease
// page of an election.
func LeasePath(socket, election string) string { return leasepage.Path(socket, election) }

// Lease checks whether the agent of this host leads, without asking the agent: by a few memory
// reads and a reading of the clock. The answer is right even when the agent is frozen or gone,
// since the deadline passes by itself. Package leasepage has what is guaranteed. Several
// goroutines may use a Lease at once.
//
// A program that is a candidate compares the token with its own: another program of the host
// may be the one that was elected.
type Lease struct {
	page *leasepage.Reader
}

// OpenLease opens the lease page at the path, see LeasePath. The agent makes the page when the
// election has its first candidate; before that the error is fs.ErrNotExist. When the agent is
// started again, the lease follows its new page.
func OpenLease(path string) (*Lease, error) {
	if path == LeasePath(temporarySocket(), filepath.Base(path)) && foreign(filepath.Dir(filepath.Dir(path)), os.Getuid()) {
		return nil, fmt.Errorf("open lease page: %w", errForeign)
	}
	page, err := leasepage.Open(path)
	if err != nil {
		return nil, err
	}
	return &Lease{page}, nil
}

// Valid reports whether the agent is inside its lease.
func (l *Lease) Valid() bool { return l.page.Valid() }

// Check returns the fencing token and how long the lease still ran at the moment of the check.
// If the agent is not inside its lease, ok is false and the others are 0.
func (l *Lease) Check() (token uint64, remaining time.Duration, ok bool) {
	lease, ok := l.page.Check()
	return lease.Term, lease.Remaining, ok
}

// Close ends the checks: every later one returns false.
func (l *Lease) Close() error { return l.page.Close() }
