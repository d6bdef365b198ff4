package netns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// Check reports why no network can be made here, nil if one can. It makes one.
func Check() error {
	n, err := New(1, 0)
	if err != nil {
		return err
	}
	return n.Close()
}

const (
	rerunVariable = "DOYEN_TESTBED_RERUN"
	probe         = "probe"  // tell by the exit code whether networks can be made
	inside        = "inside" // do what the arguments say
)

// Rerun runs this executable again, with the same arguments and streams, as root
// of its own user namespace, if that gets it the right to make networks and
// it has none yet. If it did, ran is true and the caller must end with the code.
// The error says why neither this process nor that one can make any; the caller
// goes on without, or ends.
//
// The other process calls Rerun too, before it writes or reads anything; there
// it returns at once. It does not outlive this one.
func Rerun() (code int, ran bool, err error) {
	switch os.Getenv(rerunVariable) {
	case inside:
		return 0, false, nil
	case probe:
		if err := Check(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1, true, nil
		}
		return 0, true, nil
	}
	own := Check()
	if own == nil {
		return 0, false, nil
	}
	var said strings.Builder
	if _, err := runInside(probe, nil, nil, &said); err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			err = errors.New(text)
		}
		return 0, false, fmt.Errorf("as this user: %w; in a user namespace: %w", own, err)
	}
	code, err = runInside(inside, os.Stdin, os.Stdout, os.Stderr)
	if exit, ended := errors.AsType[*exec.ExitError](err); ended && exit.Exited() {
		err = nil
	}
	return code, err == nil, err
}

// runInside runs this executable as root of a new user namespace and waits for
// its end.
func runInside(what string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	// The parent-death signal is about this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), rerunVariable+"="+what)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	// A terminal's Ctrl-C reaches both; what is sent to this one alone is passed on.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != os.Interrupt {
				_ = cmd.Process.Signal(s)
			}
		case err := <-ended:
			return cmd.ProcessState.ExitCode(), err
		}
	}
}
