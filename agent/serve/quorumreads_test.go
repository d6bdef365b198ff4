package serve_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

func TestTooManyQuorumReadsAreRefusedAtOnce(t *testing.T) {
	a := stand(t)
	a.shows("following", election.Holder{Peer: "peer-b", Lineage: 2}, 8, a.clock().Add(time.Second))
	const many = 256
	asked := 0
	a.on = func(election.Input) (election.Reply, error) {
		asked++
		return election.Reply{}, nil
	}
	refused := 0
	for range many {
		status, text := a.do(t, "GET", "/v1/elections/default?consistency=quorum", "")
		if status == http.StatusOK {
			continue
		}
		refused++
		var e api.Error
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != http.StatusServiceUnavailable || e.Err.Code != api.CodeBusy ||
			!strings.Contains(e.Err.Message, "ask again in") {
			t.Fatalf("refused by %d %s", status, text)
		}
	}
	if refused == 0 || asked+refused != many {
		t.Errorf("%d were asked, %d refused", asked, refused)
	}
	if status, _ := a.do(t, "GET", "/v1/elections/default", ""); status != http.StatusOK {
		t.Errorf("a plain read is answered by %d", status)
	}
}
