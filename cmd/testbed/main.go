// Command testbed runs agents as real processes of this machine. `up` shows them live and breaks
// them, `run` plays scenario scripts, `soak` runs for hours under random faults, `bench` measures.
// `simulate` searches simulated worlds for broken promises, `mutants` breaks code to test the tests.
//
// The package holds flags, signals and exit codes. All other logic is in the packages below
// testbed/. Exit code 0 says that all went well, 1 that something failed, 64 that the command
// line can't be understood.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/netns"
)

const (
	exitFailed = 1
	exitUsage  = 64 // EX_USAGE of sysexits.h
)

func main() {
	// The programs of the testbed are this executable, run again.
	if code, served := actor.Serve(os.Args, os.Stdout, os.Stderr); served {
		os.Exit(code)
	}
	// The first signal asks for a clean end. The second one is not caught: it ends this
	// process, and the agents die with it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin *os.File, stdout, stderr io.Writer) int {
	app := &cli.App{
		Name:        "testbed",
		HelpName:    "testbed",
		Usage:       "run agents on this machine, see them elect, and measure them",
		Writer:      stdout,
		ErrWriter:   stderr,
		HideVersion: true,
		Commands:    []*cli.Command{upCommand(stdin), runScriptsCommand(), benchCommand(), soakCommand(), simulateCommand(), mutantsCommand()},
		// By default cli may end the process on an error. Here only main ends it, with run's exit code.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   onUsageError,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usage("`testbed help` lists the commands", "unknown command %q", c.Args().First())
			}
			return usage("`testbed help` lists the commands", "no command given")
		},
	}
	for _, c := range app.Commands {
		action := c.Action
		c.OnUsageError = onUsageError
		c.HideHelpCommand = true
		c.Action = func(ctx *cli.Context) error {
			if ctx.NArg() > 0 && c.ArgsUsage == "" {
				return usage("a flag that is true or false takes its value after =, as in --quorum=false",
					"%s takes no arguments, got %q", ctx.Command.Name, ctx.Args().First())
			}
			return action(ctx)
		}
	}
	return explain(stderr, app.RunContext(ctx, args))
}

// usageError is a command line that can't be understood.
type usageError struct{ what, hint string }

func (e *usageError) Error() string { return e.what }

func usage(hint, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), hint}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	hint := "`testbed help` lists the commands"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != "testbed" {
		hint = "`testbed " + c.Command.Name + " --help` lists the flags"
	}
	plain := strings.NewReplacer("flag provided but not defined: -", "unknown flag --", "flag needs an argument: -", "a value is missing after --",
		" for flag -", " for --", ": parse error", ": it can't be read; a time has its unit, as in 10s")
	return &usageError{plain.Replace(err.Error()), hint}
}

// explain says on stderr what failed and what to do, and returns the exit code.
func explain(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*elsewhere](err); ok {
		return e.code // the other process has already printed the error
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "testbed: %s\n", strings.TrimRight(line, "\n"))
	}
	if e, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(stderr, "hint: %s\n", e.hint)
		return exitUsage
	}
	return exitFailed
}

// elsewhere ends a command whose work another process has done. That process is this
// executable, run again in a user namespace.
type elsewhere struct{ code int }

func (e *elsewhere) Error() string { return fmt.Sprintf("exit status %d of the same command", e.code) }

// needNetworks returns nil if this process may make networks. It returns *elsewhere if another
// process, which may make them, has run the command, and any other error if networks can't be made.
func needNetworks() error {
	code, ran, err := netns.Rerun()
	if ran {
		return &elsewhere{code}
	}
	return err
}

// netOf returns the loopback network if the user asks for it or no namespaces can be made, else
// namespaces.
func netOf(c *cli.Context) (hosts.Net, error) {
	if c.Bool("loopback") {
		return hosts.Loopback, nil
	}
	err := needNetworks()
	if err == nil {
		return hosts.Namespaces, nil
	}
	if ran, ok := errors.AsType[*elsewhere](err); ok {
		return hosts.Loopback, ran
	}
	fmt.Fprintf(c.App.ErrWriter, "the hosts share the loopback interface: links can't be cut, delayed or made lossy, nor disks filled\n(%v)\n", err)
	return hosts.Loopback, nil
}

func seedOf(c *cli.Context) uint64 {
	if c.IsSet("seed") {
		return c.Uint64("seed")
	}
	return rand.Uint64()
}
