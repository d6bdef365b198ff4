package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/report"
	"github.com/doyen-election/doyen/testbed/soak"
)

func soakCommand() *cli.Command {
	return &cli.Command{
		Name:  "soak",
		Usage: "run agents and programs for hours under random faults, and watch for what must never happen",
		Description: "Programs on all hosts are candidates in one election, and the one that leads adds to a counter which checks fencing\n" +
			"tokens. Each round some faults strike; then all must recover. It stops at the first overlap, falling token,\n" +
			"addition that is lost or missing recovery, and keeps all logs. Ctrl-c ends it with a summary.\n\n" +
			"Exit codes: 0 nothing was violated, 1 something was, 64 usage.",
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "for", Usage: "run for this `TIME`, such as 2h", Value: 10 * time.Minute},
			&cli.IntFlag{Name: "hosts", Usage: fmt.Sprintf("`NUMBER` of them, 3 to %d", hosts.MaxAgents), Value: 5},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that the faults follow from", DefaultText: "random"},
			&cli.BoolFlag{Name: "loopback", Usage: "no namespaces, and no faults of the network"},
			&cli.BoolFlag{Name: "jobs", Usage: "run jobs by doyen once in place of the counter: none may be started twice, or be lost without a report"},
			&cli.StringFlag{Name: "report", Usage: "write what was seen, as a page, to this `FILE`"},
		}, clusterFlags()...),
		Action: runSoak,
	}
}

func runSoak(c *cli.Context) error {
	net, err := netOf(c)
	if err != nil {
		return err
	}
	o := soak.Options{Hosts: clusterOf(c, c.Int("hosts")), For: c.Duration("for"), Seed: seedOf(c), Log: c.App.ErrWriter}
	o.Hosts.Net, o.Hosts.DiskFaults, o.Hosts.Seed = net, net == hosts.Namespaces, o.Seed
	if err := o.Check(); err != nil {
		return usage("`testbed soak --help` lists the flags", "%v", err)
	}
	o.Keep = filepath.Join(os.TempDir(), fmt.Sprintf("doyen-soak-%d", o.Seed))
	binary, clean, err := productBinary(c)
	if err != nil {
		return err
	}
	o.Hosts.Program = binary
	if c.Bool("jobs") {
		o.Doyen = binary.Path
	}
	result, err := soak.Run(c.Context, o)
	err = errors.Join(err, clean())
	fmt.Fprint(c.App.Writer, result.Summary())
	if showErr := draw(c, report.Page{Title: "Soak", Facts: result.Facts(), Recording: result.Recording}); err == nil {
		err = showErr
	}
	if err == nil && result.Violation != nil {
		err = fmt.Errorf("violated: %s; logs in %s", result.Violation, result.Violation.Logs)
	}
	return err
}
