package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
)

const (
	// programArgument makes the testbed's executable a program; people don't use it.
	programArgument = "program-of-bench"
	contested       = "bench"

	commandPackage = "github.com/doyen-election/doyen/testbed/actor/command"
)

// ServeProgram runs a program that campaigns, if this process was started for
// that with these args.
func ServeProgram(args []string, stderr io.Writer) (code int, served bool) {
	if len(args) != 4 || args[1] != programArgument {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := client.New(args[2])
	defer c.Close()
	for ctx.Err() == nil {
		err := c.Run(ctx, contested, func(ctx context.Context, term uint64) error {
			return stamp.Act(ctx, args[3], term, stamp.Now())
		})
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(stderr, "program of the bench: %v\n", err)
			return 1, true
		}
	}
	return 0, true
}

// campaigning is the command of a program that campaigns by itself.
func campaigning(socket, dir string) (*exec.Cmd, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this executable: %w", err)
	}
	return exec.Command(executable, programArgument, socket, dir), nil
}
