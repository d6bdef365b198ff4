package agent_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestADrainOutlastsRestarts: a host under maintenance is booted again and again,
// and must not take the lead in between.
func TestADrainOutlastsRestarts(t *testing.T) {
	c := lone(t)
	drain := func(client *http.Client, on string) {
		response, err := client.Post("http://d/v1/drain", "application/json", strings.NewReader(`{"on":`+on+`}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 200 {
			t.Fatalf("drain %s: %s", on, response.Status)
		}
	}
	client, _, stop := start(t, c)
	follow(t, client, leads)
	drain(client, "true")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	client, _, stop = start(t, c)
	waitFor(t, client, "/v1/agent", `"draining":true`) // shown with the first step; before it, the agent is not a candidate
	drain(client, "false")
	follow(t, client, leads)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	client, _, _ = start(t, c)
	follow(t, client, leads)
}

// TestADrainThatCantBeKeptIsRefused: the next start would not know of it.
func TestADrainThatCantBeKeptIsRefused(t *testing.T) {
	c := lone(t)
	client, _, _ := start(t, c)
	follow(t, client, leads)
	if err := os.Mkdir(c.DataDir+"/drained.new", 0o700); err != nil { // where the file would be written
		t.Fatal(err)
	}
	response, err := client.Post("http://d/v1/drain", "application/json", strings.NewReader(`{"on":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 503 {
		t.Errorf("answered %s", response.Status)
	}
	if _, text := get(t, client, "/v1/agent"); !strings.Contains(text, `"draining":false`) {
		t.Errorf("it drains all the same: %s", text)
	}
}
