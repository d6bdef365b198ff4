package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// holds waits until the page holds a lease.
func holds(t *testing.T, path string) *leasepage.Reader {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		r, err := leasepage.Open(path)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = r.Close() })
		for time.Now().Before(end) {
			if r.Valid() {
				return r
			}
		}
	}
	t.Fatal("no page with a lease")
	return nil
}

func TestTheLeasePageSaysWhatTheSocketSays(t *testing.T) {
	c := lone(t)
	client, _, stop := start(t, c)
	follow(t, client, func(change api.Change) bool { return change.IsLeader })
	path := leasepage.Path(c.Socket, "default")
	r := holds(t, path)
	first, ok := r.Check()
	if !ok || first.Term != 1 || first.Remaining > c.Lease {
		t.Errorf("%+v, %t", first, ok)
	}
	for end := time.Now().Add(patience); ; { // until a renewal
		l, ok := r.Check()
		if !ok || time.Now().After(end) {
			t.Fatalf("%+v, %t", l, ok)
		}
		if l.Deadline > first.Deadline {
			break
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("%v: %v", info.Mode(), err)
	}
	if err := stop(); err != nil || r.Valid() {
		t.Errorf("valid after the stop: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the page is still there: %v", err)
	}
	_, _, stop = start(t, c)
	for end := time.Now().Add(patience); !r.Valid(); { // the reader follows the page of the next life
		if time.Now().After(end) {
			t.Fatal("the next agent's page is not followed")
		}
	}
	if l, _ := r.Check(); l.Term <= first.Term {
		t.Errorf("term %d after %d", l.Term, first.Term)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestWithoutAQuorumThereIsNoLease(t *testing.T) {
	t.Parallel()
	c := lone(t)
	c.Quorum = false
	client, _, _ := start(t, c)
	follow(t, client, func(change api.Change) bool { return change.IsLeader })
	path := leasepage.Path(c.Socket, "default")
	var r *leasepage.Reader
	for end := time.Now().Add(patience); r == nil && time.Now().Before(end); {
		r, _ = leasepage.Open(path)
	}
	if r == nil || r.Valid() {
		t.Errorf("page %v", r)
	}
}

func TestAPageThatCantBeKeptIsAWarning(t *testing.T) {
	c := lone(t)
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(leasepage.Dir(c.Socket), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	client, _, stop := start(t, c)
	follow(t, client, func(change api.Change) bool { return change.IsLeader })
	if _, body := get(t, client, "/v1/agent"); !strings.Contains(body, `"code":"lease_page"`) {
		t.Errorf("no warning: %s", body)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
