package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/live"
)

// clusterFlags say which agents to run.
func clusterFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "algorithm", Usage: "`NAME` of the election algorithm: bully or ring", Value: "bully"},
		&cli.StringFlag{Name: "profile", Usage: "`NAME`: local, lan or wan, for leases of 300ms, 1.2s or 6s", Value: "lan"},
		&cli.BoolFlag{Name: "quorum", Usage: "only a majority of the voters makes a leader", Value: true},
	}
}

func upCommand(stdin *os.File) *cli.Command {
	return &cli.Command{
		Name:  "up",
		Usage: "run agents and watch them live",
		Description: "On a terminal keys kill, stop and restart agents; without one, or with --for, lines are printed.\n" +
			"A script is steps of VERB TARGET@TIME, counted from when the agents first agreed:\n" +
			"  --script \"kill leader@3s, start all@6s\"\n" +
			"Verbs: kill (-9), stop, continue, terminate, start, restart, resign.\n" +
			"Targets: leader, follower, all, or a name: alpha, beta, gamma...\n\n" +
			"Exit codes: 0 ended by key or signal, or after --for with all agents agreed; 1 they did not agree,\n" +
			"a step failed or two led at once; 64 usage.",
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "agents", Usage: "`NUMBER` of them, 1 to 24; the first seven vote", Value: 3},
			&cli.DurationFlag{Name: "for", Usage: "run for this `TIME`, without keys; unless --script or --kill-leader-every is given, kill the leader once and start it again"},
			&cli.StringFlag{Name: "script", Usage: "`STEPS` to do"},
			&cli.DurationFlag{Name: "kill-leader-every", Usage: "kill the leader at this `INTERVAL`, and start it again half an interval later"},
			&cli.BoolFlag{Name: "netns", Usage: "give each agent its own network namespace and address (Linux, as root or where users may have namespaces)"},
		}, clusterFlags()...),
		Action: func(c *cli.Context) error { return up(c, stdin) },
	}
}

func up(c *cli.Context, stdin *os.File) error {
	config := hosts.Config{
		Agents: c.Int("agents"), Algorithm: c.String("algorithm"), Profile: c.String("profile"), Quorum: c.Bool("quorum"),
		Program: hosts.Self{},
	}
	o := live.Options{
		Hosts: config, For: c.Duration("for"), KillLeaderEvery: c.Duration("kill-leader-every"),
		Stdin: stdin, Stdout: c.App.Writer, Getenv: os.Getenv,
	}
	if text := c.String("script"); c.IsSet("script") {
		var err error
		if o.Script, err = live.ParseScript(text, config.Names()); err != nil {
			return usage(`write it as "kill leader@3s, start all@6s"`, "--script: %v", err)
		}
	}
	if err := o.Check(); err != nil {
		return usage("`testbed up --help` lists the flags", "%v", err)
	}
	if c.Bool("netns") {
		if err := needNetworks(); err != nil {
			return fmt.Errorf("--netns: %w; without it the agents share the loopback interface", err)
		}
		o.Hosts.Net = hosts.Namespaces
	}
	return live.Run(c.Context, o)
}
