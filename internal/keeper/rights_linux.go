package keeper

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bare starts processes without capabilities: those of this process are only for doyen act. Its thread never
// ends, because the processes that it has started would end with it.
type bare chan func()

func newBare() bare {
	b := make(bare)
	go func() {
		runtime.LockOSThread()
		giveUp()
		for f := range b {
			f()
		}
	}()
	return b
}

// giveUp takes all capabilities from this thread and everything that it starts. If the service manager forbids
// capset, only a started process of root keeps some capabilities.
func giveUp() {
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) == nil; c++ {
	}
	var none [2]unix.CapUserData
	_ = unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

func (b bare) start(program string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	b <- func() {
		pid, err = syscall.ForkExec(program, args, attr)
		close(done)
	}
	<-done
	return pid, err
}

// Private keeps other processes of this user, but not root's, from tracing this one and from reading its
// memory, environment and files in /proc. The kernel ends this protection if this process executes a program.
func Private() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// Confine makes the kernel forbid this process, from now on, to execute programs or to start processes. Threads
// stay allowed. The keeper starts what the process needs. Confine needs seccomp.
func (l *Life) Confine() error {
	if l == nil || !l.page.trial.can.Load() {
		return nil // without such a keeper, this process executes the next life
	}
	filter, err := confinement()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// confinement returns the program with which the kernel checks each system call.
func confinement() ([]unix.SockFilter, error) {
	calls := []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT}
	var arch uint32
	switch runtime.GOARCH {
	case "arm64":
		arch = unix.AUDIT_ARCH_AARCH64
	case "amd64":
		arch, calls = unix.AUDIT_ARCH_X86_64, append(calls, 57, 58) // fork and vfork, which other architectures don't have
	default:
		return nil, errors.ErrUnsupported
	}
	const numberAt, archAt, flagsAt = 0, 4, 16 // offsets in struct seccomp_data
	const x32 = 0x40000000                     // marks the second set of system calls of amd64
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	// jump skips `so` statements if the comparison is true, else `not` statements.
	jump := func(compare uint16, k uint32, so, not uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | compare | unix.BPF_K, K: k, Jt: so, Jf: not}
	}
	end := func(verdict uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
	}
	refuse := end(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	f := []unix.SockFilter{load(archAt), jump(unix.BPF_JEQ, arch, 1, 0), refuse, load(numberAt), jump(unix.BPF_JGE, x32, 0, 1), refuse}
	for _, c := range calls {
		f = append(f, jump(unix.BPF_JEQ, c, 0, 1), refuse)
	}
	return append(f,
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), end(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)), // the filter can't read clone3's flags: as if it did not exist, programs use clone instead
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 3), load(flagsAt), jump(unix.BPF_JSET, unix.CLONE_THREAD, 1, 0), refuse,
		end(unix.SECCOMP_RET_ALLOW)), nil
}
