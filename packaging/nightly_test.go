package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// backup is the command of the page, and of a second job, which pays by the page's database. It runs until
// /srv/enough exists.
const backup = `#!/bin/sh
note() { echo "$1 $DOYEN_KEY $DOYEN_TRY $DOYEN_TERM $(cat /etc/hostname)" >>/srv/ledger; }
cd /srv
note starts
[ $DOYEN_ELECTION = backup ] || if sh pay; then note pays; fi
until [ -e enough ]; do sleep 0.1; done
note ends
`

// note is one line that a job's command wrote into the ledger.
type note struct {
	what, key string
	try, term int
	host      string
}

func ledger(t *testing.T, s *site) (all []note) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.hosts[0].shared, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e note
		if _, err := fmt.Sscan(line, &e.what, &e.key, &e.try, &e.term, &e.host); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// notes returns the notes of a job, or of one occurrence.
func notes(all []note, what, key string) (of []note) {
	for _, e := range all {
		if e.what == what && strings.HasPrefix(e.key, key) {
			of = append(of, e)
		}
	}
	return of
}

// The nightly job of docs/jobs.md runs each minute on three hosts, and its host is switched off during a run. A
// second job has --on-death rerun, and pays by the page's database.
func TestTheNightlyJobOfAHostThatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun := time.Now()
	s.agents(t, file(t, ".deb"), "", "install /dev/stdin /usr/local/bin/backup <<'END'\n"+backup+"END\n")
	snippet := regexp.MustCompile("(?s)```sh\n(sqlite3 .*?)```").FindSubmatch(page(t, "jobs.md"))
	if snippet == nil {
		t.Fatal("the page has no database")
	}
	s.hosts[0].must(t, "cd /srv\n"+string(snippet[1]), "")
	var lost *host
	var night, paid note // on the host that is switched off
	s.follow(t, "jobs.md", begun, []step{
		{has: "cp /usr/share/doc/doyen/examples/cron/backup.service", before: func(t *testing.T, s *site) {
			// Both jobs are set up within one minute, so that they run in the same minutes.
			s.hosts[0].await(t, "date +%S", "^[0-3]")
		}},
		{has: "doyen jobs", want: `(?m)^backup +waits +- +- +- +\S+T02:30:00Z +30 2 \* \* \*$`, again: true},
		{has: "sed ", after: func(t *testing.T, s *site) {
			lost = s.runOn(t, "backup", "salaries", "--on-death rerun")
			lost.await(t, "cat /srv/ledger", `(?s)starts backup/.*pays salaries/|pays salaries/.*starts backup/`)
			night, paid = notes(ledger(t, s), "starts", "backup/")[0], notes(ledger(t, s), "pays", "salaries/")[0]
			lost.await(t, "doyen jobs", `(?ms)^backup +runs for .*^salaries +runs for `)
			lost.unplug()
			if err := os.WriteFile(filepath.Join(lost.shared, "enough"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		{has: "doyen history backup", again: true,
			want: `(?s)backup +waits +\S+ +unknown .*job_unknown: nobody knows how \S+ of the job backup ended: .*lease expired`},
	})
	if night.host != lost.name || paid.host != lost.name {
		t.Fatalf("%s was switched off, and the jobs were started as %v and %v", lost.name, night, paid)
	}
	lost.start(t)
	lost.await(t, "systemctl is-active doyen backup salaries; doyen campaigns | sort", `(?s)^active\nactive\nactive\n.*\nbackup .*\nsalaries `)
	other, _ := s.leaderOf(t, "backup")
	if other == lost {
		t.Fatalf("%s leads again", lost.name)
	}
	other.must(t, "journalctl -u backup", "nobody knows how "+strings.TrimPrefix(night.key, "backup/")+" ended")
	for _, h := range s.hosts {
		h.await(t, "doyen jobs", `(?ms)^backup +waits +\S+ +finished .*^salaries +waits +\S+ +finished `)
		h.must(t, "doyen status | tee status; ! grep job_unknown status", "") // by now the next run has ended
	}
	all := ledger(t, s)
	t.Logf("after %.1f s: %v", time.Since(begun).Seconds(), all)
	for _, e := range notes(all, "starts", "") {
		if e.host == lost.name && e.key != night.key && e.key != paid.key {
			t.Errorf("the host that was switched off and booted again started %v", e)
		}
	}
	startedOnce(t, all, night)
	paidOnce(t, all, paid)
	t.Logf("the books:\n%s", s.hosts[0].must(t, "sqlite3 /srv/books.db 'SELECT key, count(*), max(term) FROM runs GROUP BY key'",
		fmt.Sprintf(`(?m)^%s\|1\|%d$`, regexp.QuoteMeta(paid.key), paid.term)))
}

// runOn also runs a job's command as another job, led by the same host, and returns that host.
func (s *site) runOn(t *testing.T, job, name, options string) *host {
	t.Helper()
	leads, _ := s.leaderOf(t, job)
	for _, h := range append([]*host{leads}, s.hosts...) { // that host first, so that it leads
		h.must(t, fmt.Sprintf("cd /etc/systemd/system; sed 's/cron %s/cron %s %s/' %[1]s.service >%[2]s.service; systemctl enable --now %[2]s", job, name, options), "")
		h.await(t, "doyen leader "+name, "^"+leads.name+"\n$")
	}
	return leads
}

// startedOnce checks the job without --on-death rerun.
func startedOnce(t *testing.T, all []note, night note) {
	t.Helper()
	starts := notes(all, "starts", "backup/")
	for i, e := range starts {
		switch {
		case e.try != 1 || len(notes(all, "starts", e.key)) != 1:
			t.Errorf("%s was started again", e.key)
		case i > 0 && e.term <= night.term:
			t.Errorf("%v, and before on the host that was switched off: %v", e, night)
		case i > 0 && len(notes(all, "ends", e.key)) != 1:
			t.Errorf("%v has not ended", e)
		}
	}
	if len(starts) < 2 || len(notes(all, "ends", night.key)) != 0 {
		t.Errorf("of the job: %v", starts)
	}
}

// paidOnce checks the job with --on-death rerun.
func paidOnce(t *testing.T, all []note, paid note) {
	t.Helper()
	starts := notes(all, "starts", paid.key)
	if len(starts) != 2 || starts[1].try != 2 || starts[1].term <= paid.term || starts[1].host == paid.host {
		t.Errorf("it was started %v", starts)
	}
	if ends := notes(all, "ends", paid.key); len(ends) != 1 || ends[0].try != 2 {
		t.Errorf("it ended %v", ends)
	}
	if len(notes(all, "pays", paid.key)) != 1 {
		t.Error("it has not paid once")
	}
}
