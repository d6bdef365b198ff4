package main

import (
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/keeper"
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

// clusterOf is the configuration that clusterFlags ask for.
func clusterOf(c *cli.Context, agents int) hosts.Config {
	return hosts.Config{Agents: agents, Algorithm: c.String("algorithm"), Profile: c.String("profile"), Quorum: c.Bool("quorum")}
}

func upCommand(stdin *os.File) *cli.Command {
	return &cli.Command{
		Name:  "up",
		Usage: "run agents and watch them live",
		Description: "On a terminal keys kill agents, which their keepers start again, and lose, stop and restart hosts;\n" +
			"without one, or with --for, lines are printed. It builds the product.\n\n" +
			"Exit codes: 0 ended by key or signal, or after --for with all agents agreed;\n" +
			"1 they did not agree, or two led at once; 64 usage.",
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "agents", Usage: "`NUMBER` of them, 1 to 24; the first seven vote", Value: 3},
			&cli.DurationFlag{Name: "for", Usage: "run for this `TIME`, without keys; kill the leader's agent, then lose its host and start it again"},
		}, clusterFlags()...),
		Action: func(c *cli.Context) error { return up(c, stdin) },
	}
}

func up(c *cli.Context, stdin *os.File) (err error) {
	o := live.Options{
		Hosts: clusterOf(c, c.Int("agents")), For: c.Duration("for"),
		Stdin: stdin, Stdout: c.App.Writer, Getenv: os.Getenv,
	}
	if err := o.Check(); err != nil {
		return usage("`testbed up --help` lists the flags", "%v", err)
	}
	binary, clean, err := productBinary(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	o.Hosts.Program, o.Hosts.Adjust = binary, func(_ int, a *settings.Config) { a.Keeper = keeper.Available }
	return live.Run(c.Context, o)
}
