package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/api"
)

// candidate campaigns in payments with the meta, until the result is closed.
func candidate(t *testing.T, c *http.Client, meta string) io.Closer {
	t.Helper()
	response, err := c.Post("http://d/v1/elections/payments/campaign", "application/json", strings.NewReader(`{"meta":"`+meta+`"}`))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	t.Cleanup(func() { response.Body.Close() })
	go func() { _, _ = io.Copy(io.Discard, response.Body) }() // until the body is closed
	return response.Body
}

// TestEachHostKnowsTheMetaOfTheLeadersProgram includes a watch that began before the election existed.
func TestEachHostKnowsTheMetaOfTheLeadersProgram(t *testing.T) {
	t.Parallel()
	for _, quorum := range []bool{true, false} {
		t.Run(fmt.Sprintf("quorum %t", quorum), func(t *testing.T) {
			t.Parallel()
			var clients []*http.Client
			join := []string{"127.0.0.1:1"} // nobody listens there; without --join an agent makes its own key
			for _, name := range []string{"a", "b", "c"} {
				c := lone(t)
				if c.Name, c.Join, c.Candidate, c.Quorum, c.Voters = name, join, false, quorum, nil; quorum {
					c.Voters = []string{"a", "b", "c"}
				}
				client, out, _ := start(t, c)
				clients = append(clients, client)
				_, gossip := ports(t, out.String())
				join = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(gossip))}
			}
			response, err := clients[2].Get("http://d/v1/elections/payments/watch")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			lines := json.NewDecoder(response.Body)
			until := func(what string, is func(api.Change) bool) {
				t.Helper()
				for {
					var c api.Change
					if err := lines.Decode(&c); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if is(c) {
						return
					}
				}
			}
			leads := func(meta string) func(api.Change) bool {
				return func(c api.Change) bool { return c.Leader != nil && c.Leader.Meta == meta }
			}
			first := candidate(t, clients[0], "a:80")
			until("the first leads", leads("a:80"))
			candidate(t, clients[1], "b:80")
			until("two candidates", func(c api.Change) bool { return c.Type == api.ChangeCandidates && len(c.Snapshot.Candidates) == 2 })
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			until("the second leads", leads("b:80"))
			for _, c := range clients {
				waitFor(t, c, "/v1/elections/payments", `"meta":"b:80"`)
			}
		})
	}
}
