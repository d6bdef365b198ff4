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

	"github.com/doyen-election/doyen/agent/boottime"
)

// doyenTimeout bounds one command of the product's command line.
const doyenTimeout = 30 * time.Second

// doyenCommand runs the product's command line against a host's socket: doyen
// HOST [exit=N] ARG…. It must end with 0, with ! before it with anything else.
// What it writes is there for stdout and stderr.
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
	defer cancel()
	cmd := exec.CommandContext(ctx, w.o.Binary.Path, args...)
	cmd.Env = append(os.Environ(), "DOYEN_SOCKET="+h.Config().Socket)
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
