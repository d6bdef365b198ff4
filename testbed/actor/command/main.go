// Command command is what the bench lets `doyen run` start. It stamps that it acts, from its
// first moment until SIGTERM or its end, into the folder that is its argument. It is small, so
// that little of its own start is measured.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/doyen-election/doyen/testbed/actor/stamp"
)

func main() {
	began := stamp.Now()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, began); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, began int64) error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: %s FOLDER", os.Args[0])
	}
	s, err := stamp.Commanded(began)
	if err != nil {
		return err
	}
	return stamp.Act(ctx, os.Args[1], s)
}
