package serve_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
)

func TestHistoryIsAskedByElectionAndLimit(t *testing.T) {
	asked := ""
	a := stand(t, func(c *serve.Config) {
		c.History = func(election string, limit int) []api.Transition {
			asked = fmt.Sprintf("%s/%d", election, limit)
			return []api.Transition{{Election: "e", Type: api.ChangeNoLeader, Term: 3, Evidence: "x"}}
		}
	})
	for _, c := range []struct {
		query, asked string
		status       int
	}{
		{"", "/100", 200},
		{"?election=payments&limit=7", "payments/7", 200},
		{"?limit=1024", "/1024", 200},
		{"?limit=1025", "", 400},
		{"?limit=0", "", 400},
		{"?limit=ten", "", 400},
		{"?election=%0A", "", 400},
		{"?election=_roster", "", 400},
	} {
		asked = ""
		status, text := a.do(t, http.MethodGet, "/v1/history"+c.query, "")
		if status != c.status || asked != c.asked {
			t.Errorf("%q: %d %s, asked %q, want %d and %q", c.query, status, text, asked, c.status, c.asked)
		}
	}
	if status, _ := a.do(t, http.MethodPost, "/v1/history", "{}"); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", status)
	}
}
