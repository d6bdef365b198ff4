package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
			"unexplained history of the counter or missing recovery, and keeps all logs. Ctrl-c ends it with a summary.\n\n" +
			"Exit codes: 0 nothing was violated, 1 something was, 64 usage.",
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "for", Usage: "run for this `TIME`, such as 2h", Value: 10 * time.Minute},
			&cli.IntFlag{Name: "hosts", Usage: fmt.Sprintf("`NUMBER` of them, 3 to %d", hosts.MaxAgents), Value: 5},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that the faults follow from", DefaultText: "random"},
			&cli.BoolFlag{Name: "loopback", Usage: "no namespaces, and no faults of the network"},
			&cli.StringFlag{Name: "record", Usage: "write what was seen to this `FILE`"},
			&cli.StringFlag{Name: "report", Usage: "write it as a page to this `FILE`"},
			&cli.StringFlag{Name: "keep", Usage: "`FOLDER` for the logs, if something is violated", DefaultText: "a new one in the system's temporary one"},
			&cli.BoolFlag{Name: "open", Usage: "say where the page is, and show it in a browser if there is a display"},
		}, clusterFlags()...),
		Action: runSoak,
	}
}

func runSoak(c *cli.Context) error {
	o := soak.Options{
		Hosts: hosts.Config{Agents: c.Int("hosts"), Algorithm: c.String("algorithm"), Profile: c.String("profile"), Quorum: c.Bool("quorum"),
			Program: hosts.Self{}, Net: hosts.Namespaces, DiskFaults: true},
		For: c.Duration("for"), Seed: c.Uint64("seed"), Keep: c.String("keep"), Log: c.App.ErrWriter,
	}
	if !c.IsSet("seed") {
		o.Seed = rand.Uint64()
	}
	o.Hosts.Seed = o.Seed
	if c.Bool("loopback") {
		o.Hosts.Net, o.Hosts.DiskFaults = hosts.Loopback, false
	} else if err := needNetworks(); err != nil {
		var ran *elsewhere
		if errors.As(err, &ran) {
			return err
		}
		fmt.Fprintf(c.App.ErrWriter, "soak: without faults of the network and of disks: %v\n", err)
		o.Hosts.Net, o.Hosts.DiskFaults = hosts.Loopback, false
	}
	if err := o.Check(); err != nil {
		return usage("`testbed soak --help` lists the flags", "%v", err)
	}
	var err error
	if o.Actor, err = os.Executable(); err != nil {
		return fmt.Errorf("find this executable: %w", err)
	}
	if o.Keep == "" {
		o.Keep = filepath.Join(os.TempDir(), fmt.Sprintf("doyen-soak-%d", o.Seed))
	}
	result, err := soak.Run(c.Context, o)
	fmt.Fprint(c.App.Writer, result.Summary())
	if showErr := showSoak(c, result); err == nil {
		err = showErr
	}
	if err == nil && result.Violation != nil {
		err = fmt.Errorf("violated: %s; logs in %s", result.Violation, result.Violation.Logs)
	}
	return err
}

// showSoak writes the recording and the page that were asked for.
func showSoak(c *cli.Context, result soak.Result) error {
	if result.Recording == nil {
		return nil
	}
	if path := c.String("record"); path != "" {
		if err := result.Recording.Write(path); err != nil {
			return err
		}
	}
	path := c.String("report")
	if path == "" {
		return nil
	}
	return showReport(c, path, report.Page{Title: "Soak", Facts: result.Facts(), Recording: result.Recording}, c.Bool("open"))
}
