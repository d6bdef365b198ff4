package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/runner"
	"github.com/doyen-election/doyen/internal/jobs"
)

const (
	onceUsage = "write: doyen once KEY -- CMD ARG…, or doyen once SERIES/KEY -- CMD ARG…"
	cronUsage = "write: doyen cron NAME 'SPEC' -- CMD ARG…, such as doyen cron backup '30 2 * * *' -- /usr/local/bin/backup"
)

func once(i *invocation) error {
	c, err := commandConfig(i, onceUsage, 1)
	if err != nil {
		return err
	}
	j := jobs.Config{Kind: jobs.Key, Rerun: i.Bool("retry"), NoWait: i.Bool("no-wait"), AllowOlder: i.Bool("allow-older")}
	name, key, series := strings.Cut(c.Election, "/")
	if j.Name, j.Key = name, name; series {
		j.Kind, j.Key = jobs.Series, key
	}
	c.Status, c.Try = true, j.NoWait
	return i.work(c, j)
}

func cron(i *invocation) error {
	c, err := commandConfig(i, cronUsage, 2)
	if err != nil {
		return err
	}
	j := jobs.Config{Name: c.Election, Kind: jobs.Cron, Spec: i.Args().Get(1), Zone: i.String("tz"), Late: i.duration("late"),
		Missed: jobs.Missed(i.String("missed")), Jitter: i.duration("jitter"), Rerun: i.String("on-death") == "rerun"}
	if d := i.String("on-death"); d != "" && d != "skip" && d != "rerun" {
		return usage("use skip or rerun", "cron: unknown --on-death %q", d)
	}
	return i.work(c, j)
}

// work runs a job's command whenever the job starts an occurrence.
func (i *invocation) work(c runner.Config, j jobs.Config) error {
	verb := i.Command.Name
	switch {
	case !election.ValidName(j.Name):
		return usage(nameRule, "%s: %q is not a valid election name", verb, j.Name)
	case j.Name == string(election.Default):
		return usage("use another name", "%s: in %q the hosts themselves are candidates, and only programs write a word", verb, j.Name)
	}
	c.Election = j.Name // for a series, the name without the key
	job, err := jobs.New(j)
	if err != nil {
		return usage("see docs/jobs.md", "%s: %v", verb, err)
	}
	c.Job = job
	ctx := i.question()
	agent, err := c.Client.Agent(ctx)
	if err != nil && !c.Wait {
		return fmt.Errorf("%s: %w", verb, err)
	} else if err == nil && !agent.Quorum.Enabled {
		return usage("start the agents with a quorum", "%s: the agents run with --quorum=false, and without a quorum nothing is kept from one leader to the next", verb)
	}
	if word, err := c.Client.Word(ctx, j.Name); err == nil && j.Kind != jobs.Cron && (word.Authority == api.AuthorityLease || word.Word != nil && !j.NoWait) {
		var text string
		if word.Word != nil {
			text = word.Word.Text
		}
		out := job.Step(time.Now(), jobs.Follows{Text: text})
		for _, r := range out.Reports {
			if c.Say != nil {
				c.Say(r.Line(j.Name))
			}
		}
		if out.Exit != nil {
			if c.Say != nil {
				c.Say(c.Election + ": " + jobs.Meaning(*out.Exit))
			}
			return silentExit{*out.Exit}
		}
	}
	return i.carryOut(c)
}
