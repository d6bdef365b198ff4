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

	"golang.org/x/sys/unix"
)

// Check tries to make a network. It returns nil if that works, else why it does not.
func Check() error {
	n, err := New(1, 0)
	if err != nil {
		return err
	}
	return n.Close()
}

const (
	rerunVariable = "DOYEN_TESTBED_RERUN"
	probe         = "probe"  // report by the exit code whether networks can be made
	inside        = "inside" // do what the arguments ask for
)

// Rerun runs this executable again, with the same arguments and streams, in a user namespace of its own,
// where this user has the capabilities that networks and disks need. It does so only if this process may
// not make networks and the new one may. Then ran is true, and the caller must end with the code. If
// neither may make networks, the error gives the reason, and the caller may go on without networks.
//
// Call Rerun before the process reads or writes anything. The new process calls Rerun too, and that call
// returns at once. The new process does not outlive this one.
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

// runInside runs this executable in a new user namespace and waits for its end. The user ID stays the same
// there. As the namespace's root, agents would refuse to start: it would not own the system's directories.
func runInside(what string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	// The kernel sends the parent-death signal when this thread ends, so the thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), rerunVariable+"="+what)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		// For networks, their packets and low ports, for mounts, and for the memory of the hosts' processes.
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SYS_PTRACE},
		Pdeathsig:   syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	// A terminal's Ctrl-C reaches both processes. Other signals to this process are passed on.
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
