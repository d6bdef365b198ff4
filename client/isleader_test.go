package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

func TestIsLeaderTakesTheAgentsAnswer(t *testing.T) {
	for body, want := range map[string]bool{
		`{"is_leader":true,"authority":"lease","lease_remaining_ms":600000}`:  true,
		`{"is_leader":true,"authority":"quorum","lease_remaining_ms":600000}`: true,
		`{"is_leader":true,"authority":"view"}`:                               true, // leases need a quorum
		`{"is_leader":true,"authority":"lease","lease_remaining_ms":0}`:       false,
		`{"is_leader":true,"authority":"lease","lease_remaining_ms":-5}`:      false,
		`{"is_leader":true}`: false,
		`{"is_leader":false,"authority":"lease","lease_remaining_ms":600000}`: false,
		`{}`: false,
	} {
		c := serve(t, answer("GET /v1/elections/payments", body))
		leads, e, err := c.IsLeader(t.Context(), "payments")
		if err != nil || leads != want {
			t.Errorf("%s: %t, %v; want %t", body, leads, err, want)
		}
		if e.IsLeader != strings.Contains(body, `"is_leader":true`) {
			t.Errorf("%s: the answer was changed to %+v", body, e)
		}
	}
}

// An answer that took longer than the lease it reports proves nothing.
func TestIsLeaderDoesNotTrustAnAnswerThatIsOlderThanItsLease(t *testing.T) {
	const lease = 20 * time.Millisecond
	late, err := alarm.New()
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		late.Set(alarm.Now() + int64(lease))
		<-late.C
		fmt.Fprintf(w, `{"is_leader":true,"authority":"lease","lease_remaining_ms":%d}`, lease.Milliseconds())
	}))
	if leads, e, err := c.IsLeader(t.Context(), "payments"); leads || err != nil || !e.IsLeader {
		t.Errorf("%t, %+v, %v", leads, e, err)
	}
}

func TestIsLeaderFailsAsElectionDoes(t *testing.T) {
	c := client.New(shortDir(t) + "/nobody")
	if leads, _, err := c.IsLeader(t.Context(), "payments"); leads || err == nil {
		t.Errorf("%t, %v", leads, err)
	}
}
