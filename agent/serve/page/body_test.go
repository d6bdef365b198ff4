package page

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
)

// Names, messages and reasons come from other hosts: none may become HTML.
func TestEveryValueIsEscaped(t *testing.T) {
	const bad = `<b x="y'&`
	who := &api.Leader{Name: bad, ID: bad}
	facts := Facts{Now: time.Now(),
		Agent: api.Agent{Name: bad, Cluster: bad, Algorithm: bad, Version: bad, Warnings: []api.Warning{{Code: bad, Message: bad}},
			Quorum: api.Quorum{Enabled: true, State: api.QuorumLost, Voters: 3}},
		Elections: []api.Election{{Election: bad, Leader: who, State: bad, Candidates: []string{bad, bad}}},
		Members:   []api.Member{{Name: bad, Status: bad, PeerAddr: bad, Version: bad, HTTPAddr: bad}, {Name: bad}},
		Past: []api.Transition{{Time: time.Now(), Election: bad, Reason: bad, Evidence: bad},
			{Time: time.Now(), Election: bad, Leader: who, Reason: bad, Evidence: bad}},
		Jobs:   []api.Job{{Election: bad, Kind: bad, Spec: bad, Zone: bad, Running: &api.JobRun{Occurrence: bad}, Last: &api.JobEnd{End: bad}}},
		Others: []api.AgentReport{{Name: bad, Reached: true, Warnings: []api.Warning{{Code: bad, Message: bad + bad}}}},
	}
	w := httptest.NewRecorder()
	Handler(func() Facts { return facts }).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	text := w.Body.String()
	if strings.Contains(text, "<b x") || strings.Contains(text, "y'") || strings.Contains(text, "{{") {
		t.Errorf("a value is not escaped, or a place is left empty:\n%s", text)
	}
	if n := strings.Count(text, "&lt;b x=&#34;y&#39;&amp;"); n < 20 {
		t.Errorf("%d values are on the page", n)
	}
}
