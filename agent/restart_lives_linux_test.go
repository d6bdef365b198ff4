package agent_test

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent"
)

// A restart ends no leadership: no program may hear that it does, for its next life leads on.
func TestARestartTellsNoProgramThatItIsOver(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "lives")
	if err != nil {
		t.Skipf("a record needs a tmpfs at /dev/shm, which CI has: %v", err)
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
				t.Fatalf("the program was notified: %s", line)
			}
		case <-deadline:
			return
		}
	}
}

// Without a record the next process run is another holder: what is led is handed over first.
func TestARestartWithoutARecordHandsOver(t *testing.T) {
	c := lone(t)
	c.RecordDir, c.Program, c.Candidate = filepath.Join(t.TempDir(), "missing"), "/bin/true", false
	client, _, stop := start(t, c)
	response, err := client.Post("http://d/v1/elections/payments/campaign", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	if !await(lines, `"elected"`) {
		t.Fatal("it was not elected")
	}
	answer, err := client.Post("http://d/v1/restart", "application/json", nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	if !await(lines, `"revoked"`) {
		t.Error("the program that leads was not notified that it is over")
	}
	response.Body.Close()
	if err := stop(); !errors.Is(err, agent.ErrRestart) {
		t.Errorf("it ended with %v", err)
	}
}

// await reads up to a line that has the text.
func await(lines *bufio.Scanner, text string) bool {
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return true
		}
	}
	return false
}
