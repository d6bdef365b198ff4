//go:build linux

package examples_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
)

// environment is the environment of a program on the agent's host.
func (m *member) environment() []string {
	return []string{"DOYEN_SOCKET=" + m.socket, "PATH=" + doyen.dir + ":" + os.Getenv("PATH")}
}

// Every host runs the line, as cron does, at about the same time.
func TestTheCrontabRunsEachMinuteOnOneHost(t *testing.T) {
	t.Parallel()
	need(t, "sh")
	text, err := os.ReadFile("cron/report")
	if err != nil {
		t.Fatal(err)
	}
	var command string
	for line := range strings.Lines(string(text)) {
		if fields := strings.SplitN(strings.TrimSpace(line), " ", 7); len(fields) == 7 && strings.HasPrefix(line, "*/5 ") && fields[5] == "root" {
			command = strings.ReplaceAll(fields[6], `\%`, "%") // as cron does
		}
	}
	if command == "" {
		t.Fatal("the file holds no job")
	}
	tr := start(t, none)
	ran := filepath.Join(t.TempDir(), "ran")
	command = strings.Replace(command, "/usr/local/bin/report", `sh -c 'echo "$DOYEN_KEY" >> `+ran+"'", 1)
	var hosts sync.WaitGroup
	for _, m := range tr.agents {
		hosts.Go(func() {
			if code, out := run(t, m.environment(), "sh", "-c", command); code != 0 {
				t.Errorf("on %s: %d %s", m.name, code, out)
			}
		})
	}
	hosts.Wait()
	lines, err := os.ReadFile(ran)
	if err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(string(lines))
	if n := len(keys); len(slices.Compact(slices.Sorted(slices.Values(keys)))) != n || n == 0 || !strings.HasPrefix(keys[0], "report/2") {
		t.Errorf("ran as %q", keys)
	}
	lost := tr.agents[0]
	lost.kill(t)
	if code, _ := run(t, lost.environment(), "sh", "-c", command); code != 3 {
		t.Errorf("without an agent the job ends with %d", code)
	}
}

// The test runs the unit with a spec of every minute, after all hosts were off for a moment.
func TestTheNightlyJobRunsOnOneHost(t *testing.T) {
	t.Parallel()
	need(t, "sh")
	text, err := os.ReadFile("cron/backup.service")
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(text), "\nExecStart=")
	command, _, _ = strings.Cut(command, "\n")
	ran := filepath.Join(t.TempDir(), "ran")
	for from, to := range map[string]string{"/usr/bin/doyen": "exec " + doyen.path, "30 2 * * *": "* * * * *",
		"/usr/local/bin/backup": `sh -c 'echo "$DOYEN_KEY" >> ` + ran + "'"} {
		if !strings.Contains(command, from) {
			t.Fatalf("%s has no %s", command, from)
		}
		command = strings.Replace(command, from, to, 1)
	}
	tr := start(t, none)
	off, err := tr.agents[0].client.Stand(t.Context(), "backup", api.CampaignRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, err := off.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if line.Type != api.CampaignElected {
			continue
		}
		word := fmt.Sprintf(`{"v":1,"kind":"cron","spec":"* * * * *","done":"%s"}`, time.Now().Add(-2*time.Minute).UTC().Format(time.RFC3339))
		if _, err := off.Write(t.Context(), api.WordRequest{Term: line.Term, Text: word}); err != nil {
			t.Fatal(err)
		}
		break
	}
	if err := off.Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range tr.agents {
		m.stand(t, nil, "sh", "-c", command)
	}
	finished := func() (n int) {
		for _, m := range tr.agents {
			all, err := m.client.Jobs(t.Context())
			if err == nil && len(all) == 1 && all[0].Total["finished"] > 0 && all[0].Running == nil && all[0].Total["missed"] > 0 {
				n++
			}
		}
		return n
	}
	tr.await("all to show the end of a run, and the one that was missed", func() bool { return finished() == 3 })
	lines, err := os.ReadFile(ran)
	if err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(string(lines))
	if n := len(keys); len(slices.Compact(slices.Sorted(slices.Values(keys)))) != n || !strings.HasPrefix(keys[0], "backup/2") {
		t.Errorf("ran as %q", keys)
	}
}

// When two of three payments are made, the leader's agent, `doyen once` and the payment program are killed. The
// list is a pipe, so the program waits there.
func TestTheMoneyIsPaidOnce(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	pay, err := filepath.Abs("payments/pay")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	books, salaries := filepath.Join(dir, "books.db"), filepath.Join(dir, "salaries")
	if err := syscall.Mkfifo(salaries, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := os.OpenFile(salaries, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	send := func(lines string) {
		t.Helper()
		if _, err := list.WriteString(lines); err != nil {
			t.Fatal(err)
		}
	}
	query := func(sql string) []string {
		code, out := run(t, nil, "python3", "-c", "import sqlite3, sys\nfor row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row)", books, sql)
		if code != 0 || out == "" { // the table does not exist yet
			return nil
		}
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	paid := func() []string { return query("SELECT key, cents, term FROM payments ORDER BY term, key") }
	tr := start(t, none)
	runs := map[*member]*exec.Cmd{}
	for _, m := range tr.agents {
		runs[m] = m.stand(t, nil, doyen.path, "once", "payroll/2026-11", "--retry", "--", pay, books, salaries)
	}
	send("ann 320000\nbob 280000\n")
	tr.await("two payments", func() bool { return len(paid()) == 2 })
	first := tr.leading("payroll")
	if first == nil {
		t.Fatal("the run goes on, and no agent leads")
	}
	former := query("SELECT term FROM token")
	first.kill(t)
	if err := runs[first].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	tr.await("the next run", func() bool { return !slices.Equal(query("SELECT term FROM token"), former) })
	send("ann 320000\nbob 280000\ncid 300000\n")
	tr.await("the third payment", func() bool { return len(paid()) == 3 })
	if err := list.Close(); err != nil { // the end of the list
		t.Fatal(err)
	}
	for _, m := range tr.agents {
		if err := runs[m].Wait(); (err == nil) != (m != first) {
			t.Errorf("doyen once on %s: %v", m.name, err)
		}
	}
	var keys [3]string
	var cents, terms [3]uint64
	for i, row := range paid() {
		if _, err := fmt.Sscan(row, &keys[i], &cents[i], &terms[i]); err != nil {
			t.Fatal(err)
		}
	}
	if keys != [3]string{"payroll/2026-11/ann", "payroll/2026-11/bob", "payroll/2026-11/cid"} || cents[0]+cents[1]+cents[2] != 900000 ||
		terms[0] != terms[1] || terms[2] <= terms[1] {
		t.Errorf("paid %q", paid())
	}
	env := []string{"DOYEN_ELECTION=payroll", "DOYEN_KEY=payroll/2026-12", fmt.Sprintf("DOYEN_TERM=%d", terms[0])}
	late := filepath.Join(dir, "late")
	if err := os.WriteFile(late, []byte("ann 320000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, env, pay, books, late); code != 3 || !strings.Contains(out, "has ended") || len(paid()) != 3 {
		t.Errorf("the former leader, late: %d %s", code, out)
	}
}

// The test runs the snippets of docs/jobs.md that name no host, unchanged. The tests of packaging run the
// others.
func TestTheSnippetsOfTheJobsPageRun(t *testing.T) {
	t.Parallel()
	need(t, "sh", "curl", "sqlite3")
	page, err := os.ReadFile("../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?ms)^```sh\n([^#].*?)^```$").FindAllSubmatch(page, -1)
	if len(found) != 2 {
		t.Fatalf("found %d snippets, of an API and of a database", len(found))
	}
	keys := make(chan string, 1)
	bank := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { keys <- r.Header.Get("Idempotency-Key") }))
	t.Cleanup(bank.Close)
	if code, out := run(t, []string{"DOYEN_KEY=payroll/2026-11", "PAYMENTS_URL=" + bank.URL}, "sh", "-c", string(found[0][1])); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	if key := <-keys; key != "payroll/2026-11" {
		t.Errorf("the API received the key %q", key)
	}
	dir := t.TempDir()
	a := start(t, none).agents[0]
	// Since 3.41, the command takes double quotes for a column's name by default.
	strict := "cd " + dir + "; sqlite3() { command sqlite3 -cmd '.dbconfig dqs_dml off' \"$@\"; }\n"
	if code, out := run(t, a.environment(), "sh", "-e", "-c", strict+string(found[1][1])); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	for _, c := range []struct{ key, term, says string }{
		{"payroll/2026-12", "0", "a later leader has written"},
		{"payroll/2026-11", "99", "UNIQUE constraint failed"},
	} {
		if code, out := run(t, []string{"DOYEN_KEY=" + c.key, "DOYEN_TERM=" + c.term}, "sh", "-c", strict+". ./pay"); code == 0 || !strings.Contains(out, c.says) {
			t.Errorf("%s in term %s: %d %s", c.key, c.term, code, out)
		}
	}
}
