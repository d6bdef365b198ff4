package agent_test

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// An agent without --join and --voters is alone. An agent of another user of this host can't join it, and both
// agents warn.
func TestNobodyJoinsAnAgentThatIsToldNothing(t *testing.T) {
	t.Parallel()
	mine := lone(t)
	mine.Name = "mine"
	client, out, _ := start(t, mine)
	waitFor(t, client, "/v1/elections/default", `"is_leader":true`)
	_, gossip := ports(t, out.String())

	stranger := lone(t)
	stranger.Name, stranger.Priority = "stranger", 1_000_000
	stranger.Join = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(gossip))}
	their, log, _ := start(t, stranger)
	waitFor(t, their, "/v1/agent", "has a cluster key, but this one has none")
	waitFor(t, client, "/v1/agent", "has no cluster key, but this one has")
	if !strings.Contains(log.String(), "every user of this host") {
		t.Errorf("an agent that joins without a key says nothing of it:\n%s", log)
	}
	if strings.Contains(out.String(), "every user of this host") {
		t.Errorf("an agent that nobody can join warns of those who could:\n%s", out)
	}
	answer, err := client.Get("http://d/v1/members")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	members, err := io.ReadAll(answer.Body)
	if err != nil || strings.Contains(string(members), "stranger") {
		t.Errorf("members %s, %v", members, err)
	}
	waitFor(t, client, "/v1/elections/default", `"is_leader":true`)
	waitFor(t, client, "/v1/keys", `"keys":[]`)
}
