package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/act/runner"
	"github.com/doyen-election/doyen/internal/jobs"
)

const (
	onceUsage = "write: doyen once KEY -- CMD ARG…, or doyen once SERIES/KEY -- CMD ARG…"
	cronUsage = "write: doyen cron NAME 'SPEC' -- CMD ARG…, such as doyen cron backup '30 2 * * *' -- /usr/local/bin/backup"
)

func onceCommand() command {
	return command{
		name: "once", args: "KEY|SERIES/KEY -- CMD ARG…", max: math.MaxInt,
		flags: append(commandFlags(),
			truthFlag("no-wait", "if another host runs it, exit with 75 at once"),
			truthFlag("retry", "if its starter died or was stopped, run it again, under a higher DOYEN_TERM"),
			truthFlag("allow-older", "exit with 0 in place of 77 for a key that a higher one has skipped")),
		run: once,
	}
}

func cronCommand() command {
	return command{
		name: "cron", args: "NAME 'SPEC' -- CMD ARG…", max: math.MaxInt,
		flags: append(commandFlags(),
			&cli.StringFlag{Name: "tz", Usage: "`ZONE` of SPEC, such as Europe/Berlin (default: UTC)"},
			durationFlag("late", "`TIME` after which a start that is due counts as missed", jobs.DefaultLate, jobs.LeastLate, longestGrace),
			&cli.StringFlag{Name: "missed", Usage: "`WHICH` of several that are due and not late run: last, all or none", DefaultText: string(jobs.Latest)},
			&cli.StringFlag{Name: "on-death", Usage: "`WHAT` to do if a run's starter died before it wrote how CMD ended: skip or rerun", DefaultText: "skip"},
			durationFlag("jitter", "`TIME` by up to which all starts are later, by an amount that depends on NAME", 0, 0, 24*time.Hour)),
		run: cron,
	}
}

func once(i *invocation) error {
	c, err := commandConfig(i, "once", onceUsage, 1)
	if err != nil {
		return err
	}
	j := jobs.Config{Kind: jobs.Key, Rerun: i.Bool("retry"), NoWait: i.Bool("no-wait"), AllowOlder: i.Bool("allow-older")}
	name, key, series := strings.Cut(c.Election, "/")
	if j.Name, j.Key = name, name; series {
		j.Kind, j.Key = jobs.Series, key
	}
	c.Status, c.Try = true, j.NoWait
	return i.work("once", c, j)
}

func cron(i *invocation) error {
	c, err := commandConfig(i, "cron", cronUsage, 2)
	if err != nil {
		return err
	}
	j := jobs.Config{Name: c.Election, Kind: jobs.Cron, Spec: i.Args().Get(1), Zone: i.String("tz"), Late: i.duration("late"),
		Missed: jobs.Missed(i.String("missed")), Jitter: i.duration("jitter"), Rerun: i.String("on-death") == "rerun"}
	if d := i.String("on-death"); d != "" && d != "skip" && d != "rerun" {
		return usage("use skip or rerun", "cron: unknown --on-death %q", d)
	}
	return i.work("cron", c, j)
}

// work runs a job's command whenever the job says so.
func (i *invocation) work(verb string, c runner.Config, j jobs.Config) error {
	switch {
	case !election.ValidName(j.Name):
		return usage(nameRule, "%s: %q is not a valid election name", verb, j.Name)
	case j.Name == string(election.Default):
		return usage("use another name", "%s: in %q the hosts themselves are candidates, and only programs write a word", verb, j.Name)
	}
	c.Election = j.Name // of a series, without the key
	job, err := jobs.New(j)
	if err != nil {
		return usage("see docs/jobs.md", "%s: %v", verb, err)
	}
	c.Job = job
	ctx, cancel := i.question()
	defer cancel()
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
	return i.carryOut(verb, c)
}
