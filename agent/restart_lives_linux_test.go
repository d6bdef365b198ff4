package agent_test

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/keeper"
)

// A restart ends no leadership, since the next life leads on. So programs are sent no revoked line.
func TestARestartTellsNoProgramThatItIsOver(t *testing.T) {
	t.Parallel()
	c := lone(t)
	c.RecordDir, c.Candidate = inMemory(t), false
	next := c
	next.Lease = 2 * time.Second // the roster has this lease by then, so a restart changes nothing
	around := installed(t, "cat <<'END'\n"+checked(t, next, record.Format)+"\nEND")
	client, _, stop := start(t, c, around)
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
	set, err := client.Post("http://d/v1/settings", "application/json", strings.NewReader(`{"lease_ms":2000}`))
	if err != nil || set.StatusCode != http.StatusOK {
		t.Fatal(set, err)
	}
	set.Body.Close()
	if outcome := restart(t, client); !outcome.Done || strings.Contains(outcome.Message, "handed over") {
		t.Fatalf("%+v", outcome)
	}
	_ = stop() // Run has returned, and the process would end at once
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

// If the next process can't go on from the record, it is another holder. So the agent hands over first.
func TestARestartHandsOverWhereTheNextLifeCanNotGoOn(t *testing.T) {
	t.Parallel()
	for name, handsOver := range map[string]struct {
		keeps  bool
		format int
		why    string
	}{
		"no record":      {false, record.Format, "the record is missing"},
		"another format": {true, record.Format + 1, "has another format of the record"},
		"an old program": {true, 0, "has another format of the record"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lone(t)
			c.RecordDir, c.Candidate = filepath.Join(t.TempDir(), "missing", "too"), false
			if handsOver.keeps {
				c.RecordDir = inMemory(t)
			}
			around := installed(t, "cat <<'END'\n"+checked(t, c, handsOver.format)+"\nEND")
			client, _, stop := start(t, c, around)
			response, err := client.Post("http://d/v1/elections/payments/campaign", "application/json", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			lines := bufio.NewScanner(response.Body)
			if !await(lines, `"elected"`) {
				t.Fatal("it was not elected")
			}
			if outcome := restart(t, client); !outcome.Done || !strings.Contains(outcome.Message, handsOver.why) {
				t.Fatalf("%+v", outcome)
			}
			if !await(lines, `"revoked"`) {
				t.Error("the program that leads was not notified that it is over")
			}
			response.Body.Close()
			if err := stop(); !errors.Is(err, agent.ErrRestart) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// A restart can't remove the keeper, since the keeper starts the next process.
func TestARestartKeepsItsKeeper(t *testing.T) {
	page, err := unix.MemfdCreate("page", unix.MFD_ALLOW_SEALING) // the page of a keeper that ignores what this agent writes
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOYEN_KEEPER_PAGE", strconv.Itoa(page))
	c := lone(t)
	c.Keeper = true
	without := c
	without.Keeper = false
	around := installed(t, "cat <<'END'\n"+checked(t, without, record.Format)+"\nEND")
	around.Life = keeper.Attach()
	client, _, stop := start(t, c, around)
	if outcome := restart(t, client); outcome.Done || !strings.Contains(outcome.Message, `--keeper has changed from "true" to "false"`) {
		t.Errorf("%+v", outcome)
	}
	if err := stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// Without a keeper, this agent itself reads the configuration of the next process.
func TestAnAgentWithoutAKeeperReadsItsConfigurationBeforeARestart(t *testing.T) {
	t.Parallel()
	c := lone(t)
	c.RecordDir, c.Candidate = inMemory(t), false
	bad := errors.New("--lease: bad")
	client, log, stop := start(t, c, agent.Process{Program: "doyen", Reread: func() (settings.Config, error) { return c, bad }})
	if outcome := restart(t, client); outcome.Done || outcome.Message != "doyen can't start with this configuration: --lease: bad" {
		t.Errorf("%+v", outcome)
	}
	bad = nil
	if outcome := restart(t, client); !outcome.Done || outcome.Message != "" {
		t.Errorf("%+v", outcome)
	}
	log.wait(t, "restarting") // a stop before this line would not be a restart
	if err := stop(); !errors.Is(err, agent.ErrRestart) {
		t.Errorf("it ended with %v", err)
	}
}

// inMemory returns a directory in which a record can be kept.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lives")
	if err != nil {
		t.Skipf("a record needs a tmpfs at /dev/shm, which CI has: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
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
