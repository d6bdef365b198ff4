package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// doyenTimeout bounds one command of the product's command line.
const doyenTimeout = 30 * time.Second

// doyenCommand runs the product's command line with a host's socket: doyen HOST [exit=N] ARG….
// It must end with status N, by default 0; after ! it must end with any other status than 0.
// The commands stdout and stderr then apply to its output. With & at the end, it runs in the
// background until the script ends.
func doyenCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	fails := len(args) > 0 && args[0] == "!"
	if fails {
		args = args[1:]
	}
	if len(args) < 2 {
		return "", errors.New("want a host and the arguments of doyen")
	}
	h, err := w.oneHost(args[0])
	if err != nil {
		return "", err
	}
	args = args[1:]
	want := -1
	if key, value, err := pair(args[0]); err == nil && key == "exit" {
		if want, err = strconv.Atoi(value); err != nil {
			return "", fmt.Errorf("%s: want a number", args[0])
		}
		args = args[1:]
	}
	ctx, cancel := context.WithTimeout(w.ctx, doyenTimeout)
	if args[len(args)-1] == "&" {
		ts.Defer(cancel)
		return w.background(w.doyen(ctx, h, args[:len(args)-1]))
	}
	defer cancel()
	cmd := w.doyen(ctx, h, args)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	w.acted = boottime.Now()
	err = cmd.Run()
	_, _ = ts.Stdout().Write(out.Bytes())
	_, _ = ts.Stderr().Write(errs.Bytes())
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return "", err
	}
	got := cmd.ProcessState.ExitCode()
	saw := fmt.Sprintf("exit %d after %s", got, boottime.Now().Sub(w.acted).Round(time.Millisecond))
	switch {
	case want >= 0 && got != want:
		return saw, fmt.Errorf("want exit %d; instead: %s\n%s%s", want, saw, &out, &errs)
	case want < 0 && fails != (got != 0):
		return saw, fmt.Errorf("it ended with %s\n%s%s", saw, &out, &errs)
	}
	return saw, nil
}

func (w *world) doyen(ctx context.Context, h *hosts.Host, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.o.Binary.Path, args...)
	cmd.Env = append(os.Environ(), "DOYEN_SOCKET="+h.Config().Socket)
	return cmd
}

// background starts a command without waiting for its end. Its context ends it.
func (w *world) background(cmd *exec.Cmd) (string, error) {
	w.acted = boottime.Now()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	go func() { _ = cmd.Wait() }()
	return "started", nil
}
