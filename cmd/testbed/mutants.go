package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/testbed/mutants"
)

func mutantsCommand() *cli.Command {
	return &cli.Command{
		Name:      "mutants",
		Usage:     "break the code in known ways, and see which test notices",
		ArgsUsage: "[NAME...]",
		Description: "Each mutant is a file of " + mutants.Folder + ". The suite is run on it until a test fails,\n" +
			"first the package that should notice it. It needs the source tree, which stays as it is.\n\n" +
			"Exit codes: 0 every mutant was caught; 1 one survived, or no longer applies or compiles; 64 usage.",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "for", Usage: "begin no mutant after this `TIME`; the newest commit decides which come first", DefaultText: "run all"},
			&cli.StringFlag{Name: "since", Usage: "with --for: those whose package has changed since this `COMMIT` come before all others"},
			&cli.IntFlag{Name: "jobs", Usage: "`NUMBER` of mutants at once", DefaultText: "one a processor"},
			&cli.BoolFlag{Name: "verbose", Usage: "show the output of the tests"},
		},
		Action: runMutants,
	}
}

func runMutants(c *cli.Context) error {
	o := mutants.Options{Names: c.Args().Slice(), For: c.Duration("for"), Since: c.String("since"), Jobs: c.Int("jobs"), Progress: c.App.ErrWriter}
	if err := o.Check(); err != nil {
		return usage("`testbed mutants --help` lists the flags", "%v", err)
	}
	found, err := mutants.Run(c.Context, o)
	if unknown, ok := errors.AsType[*mutants.UnknownError](err); ok {
		return usage("they are the files of "+mutants.Folder, "%v", unknown)
	}
	if err != nil {
		return err
	}
	fmt.Fprint(c.App.Writer, found.Summary())
	for _, m := range found.Outcomes {
		if c.Bool("verbose") || !m.Noticed() {
			fmt.Fprintf(c.App.ErrWriter, "\n%s: %s\n%s\n", m.Mutant.Name, m.Verdict, m.Detail)
		}
	}
	if missed := found.Missed(); len(missed) > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", len(missed), len(found.Outcomes))
	}
	return nil
}
