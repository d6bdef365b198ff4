package agent_test

import (
	"bufio"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// A restart ends no leadership: no program may hear that it does, for its next life leads on.
func TestARestartTellsNoProgramThatItIsOver(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "lives")
	if err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	defer os.RemoveAll(dir)
	c := lone(t)
	c.RecordDir, c.Program, c.Candidate = dir, "/bin/true", false
	client, _, stop := start(t, c)
	response, err := client.Post("http://d/v1/elections/payments/campaign", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := make(chan string, 100)
	go func() {
		for s := bufio.NewScanner(response.Body); s.Scan(); {
			lines <- s.Text()
		}
	}()
	for line := range lines {
		if strings.Contains(line, `"elected"`) {
			break
		}
	}
	answer, err := client.Post("http://d/v1/restart", "application/json", nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	_ = stop() // what Run returned: from here on the process is to end at once
	for deadline := time.After(100 * time.Millisecond); ; {
		select {
		case line := <-lines:
			if strings.Contains(line, "revoked") {
				t.Fatalf("the program was told %s", line)
			}
		case <-deadline:
			return
		}
	}
}
