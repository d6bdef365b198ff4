package keeper

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confined tries what an attacker of a life could try. The programs don't exist: if the kernel allowed a call,
// its error would be another one.
func confined(kept *Life) {
	before := make(chan func()) // runs on a thread that existed before Confine
	go func() {
		runtime.LockOSThread()
		for f := range before {
			f()
		}
	}()
	began := make(chan bool)
	before <- func() { close(began) }
	<-began
	if err := kept.Confine(); err != nil {
		fmt.Println("tried", err)
		return
	}
	status, _ := os.ReadFile("/proc/thread-self/status")
	var rights []string
	for _, found := range regexp.MustCompile(`(?m)^Cap(Inh|Prm|Eff|Amb):\t0*(.*)$`).FindAllStringSubmatch(string(status), -1) {
		rights = append(rights, found[1]+"="+found[2])
	}
	name, _ := unix.BytePtrFromString("/nonexistent/doyen")
	path, cwd := uintptr(unsafe.Pointer(name)), unix.AT_FDCWD
	raw := func(call, first, second uintptr) error {
		_, _, errno := unix.RawSyscall(call, first, second, 0)
		return errno
	}
	there := make(chan error, 1)
	before <- func() { there <- raw(unix.SYS_EXECVE, path, 0) }
	_, clone := syscall.ForkExec("/nonexistent/doyen", []string{"doyen"}, nil)
	fmt.Println("tried", strings.Join(rights, " "), "execve:", raw(unix.SYS_EXECVE, path, 0), "execveat:", raw(unix.SYS_EXECVEAT, uintptr(cwd), path),
		"on another thread:", <-there, "clone:", clone, "clone3:", raw(unix.SYS_CLONE3, 0, 0))
	runtime.KeepAlive(name)
}

// An attacker who controls the agent can start no program, on any thread, and has no capability.
func TestALifeHasNoRightsAndTheKernelRefusesItPrograms(t *testing.T) {
	k := keep(t, nil, "confined")
	const want = "Inh= Prm= Eff= Amb= execve: operation not permitted execveat: operation not permitted on another thread: operation not permitted" +
		" clone: operation not permitted clone3: function not implemented"
	if got := k.line("tried"); got != want {
		t.Errorf("it has tried:\n%s\nwant\n%s", got, want)
	}
	k.send(k.cmd.Process.Pid, syscall.SIGTERM)
	if code := k.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
