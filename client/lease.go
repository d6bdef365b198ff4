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

// Lease checks whether the agent of this host leads, without asking it: a check is a few memory reads and
// a reading of the clock. The answer is right even if the agent is frozen or dead, since the deadline
// passes by itself. The exact guarantees are in package leasepage. Several goroutines may use a Lease at
// once.
//
// A program that is a candidate must compare the token with its own: the agent may have elected another
// program of this host.
type Lease struct {
	page *leasepage.Reader
}

// OpenLease opens the lease page at the path, see LeasePath. The agent makes the page when the election
// gets its first candidate; before that, the error is fs.ErrNotExist. If the agent is started again, the
// Lease uses the new page.
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

// Check returns the fencing token, and how much of the lease remained at the moment of the check. If the
// agent is not inside its lease, ok is false and the other two are 0.
func (l *Lease) Check() (token uint64, remaining time.Duration, ok bool) {
	lease, ok := l.page.Check()
	return lease.Term, lease.Remaining, ok
}

// Close makes every later check return false.
func (l *Lease) Close() error { return l.page.Close() }
