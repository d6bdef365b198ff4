package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/jobs"
)

func showJobs(i *invocation) error {
	if i.Bool("reset-done") {
		return resetDone(i, i.Args().First())
	}
	return listJobs(i, i.Args().First(), time.Now())
}

func listJobs(i *invocation, name string, now time.Time) error {
	ctx := i.question()
	all, err := i.client().Jobs(ctx)
	if err != nil {
		return fmt.Errorf("list the jobs: %w", err)
	}
	rows := [][]string{{"JOB", "STATE", "LAST RUN", "ENDED", "AGO", "NEXT", "SPEC"}}
	for _, j := range all {
		if name == "" || name == j.Election {
			rows = append(rows, jobRow(j, now))
		}
	}
	switch {
	case len(rows) > 1:
		return i.answer(table(rows))
	case name != "":
		return &failure{code: exitNone, what: name + " is not a job", hint: "`doyen jobs` lists the jobs; `doyen word " + name + "` prints the word of an election"}
	}
	return i.answer("no jobs: nothing has been run by `doyen once` or `doyen cron`\n")
}

func jobRow(j api.Job, now time.Time) []string {
	row := []string{j.Election, "waits", "", "", "", "", j.Spec}
	if j.Zone != "" {
		row[6] += " " + j.Zone
	}
	if j.Kind != string(jobs.Cron) {
		row[1] = "idle"
	}
	if j.Kind == string(jobs.Key) && j.Done != "" {
		row[1] = "done"
	}
	if r := j.Running; r != nil && r.Held {
		row[1] = "runs for " + age(now.Sub(r.Since))
	} else if r != nil {
		row[1] = "starter died"
	}
	if e := j.Last; e != nil {
		row[2], row[3], row[4] = e.Occurrence, e.End, age(now.Sub(e.When))
		if e.Code != 0 {
			row[3] += fmt.Sprintf(" (%d)", e.Code)
		}
	}
	if j.Next != nil {
		row[5] = j.Next.UTC().Format(time.RFC3339)
	}
	return row
}

func resetDone(i *invocation, name string) error {
	if name == "" {
		return usage("write: doyen jobs NAME --reset-done", "jobs: NAME is missing")
	}
	what := "reset what is done of " + name
	ctx := i.question()
	c := i.client()
	word, err := c.Word(ctx, name)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case word.Word == nil:
		return &failure{code: exitNone, what: what, err: errors.New("it is not a job: it has no word")}
	}
	campaigns, err := c.Campaigns(ctx)
	leads, here := each.First(campaigns, func(k api.Campaign) bool { return k.Election == name && k.Term > 0 && k.Campaign != "" })
	if err == nil && !here {
		err = errors.New("no program of this host leads it")
	}
	if err != nil {
		return &failure{code: exitFailed, what: what, err: err, hint: "the host that leads it can do this, as root: `doyen leader " + name + "` prints its name"}
	}
	text, err := jobs.ResetDone(word.Word.Text, time.Now(), leads.Term)
	if err == nil {
		_, err = c.WriteWord(ctx, leads.Campaign, api.WordRequest{Term: leads.Term, If: word.Word.WordID, Text: text})
	}
	if err != nil {
		return &failure{code: exitFailed, what: what, err: err}
	}
	return i.show(api.Outcome{Done: true}, name+" is done up to now\n")
}

// awaitJobs waits until no job runs on this host, but not longer than atMost.
func (i *invocation) awaitJobs(atMost time.Duration) (err error) {
	ctx, c, said := i.upTo(atMost), i.client(), ""
	until(ctx, 500*time.Millisecond, func() bool {
		var here []string
		here, err = jobsHere(ctx, c)
		if text := strings.Join(here, ", "); text != said && text != "" {
			said = text
			fmt.Fprintf(i.stderr, "doyen: waiting for %s to end\n", printable(text))
		}
		return err != nil || len(here) == 0
	})
	if ctx.Err() != nil { // ctx has ended, so err only shows that the last call was cut short
		return i.Context.Context.Err()
	}
	return err
}

// jobsHere returns the jobs that run on this host.
func jobsHere(ctx context.Context, c *client.Client) (names []string, err error) {
	all, err := c.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	campaigns, err := c.Campaigns(ctx)
	for _, j := range all {
		if j.Running != nil && j.Running.Held && slices.ContainsFunc(campaigns, func(k api.Campaign) bool { return k.Election == j.Election && k.Term > 0 }) {
			names = append(names, j.Election)
		}
	}
	return names, err
}
