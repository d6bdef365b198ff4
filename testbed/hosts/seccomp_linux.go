package hosts

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/base/fd"
)

// intercept selects the system calls of a host's processes that the testbed answers.
type intercept struct {
	syncs bool // fsync and fdatasync
	clock bool // clock_gettime of CLOCK_BOOTTIME, CLOCK_MONOTONIC and CLOCK_REALTIME; readings by the vDSO are no calls
}

// notification is the kernel's struct seccomp_notif: a system call that waits for an answer.
type notification struct {
	id    uint64
	pid   uint32 // of the thread
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is the kernel's struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// architecture is the kernel's number for this architecture, if calls can be intercepted here.
func architecture() (uint32, error) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil
	}
	return 0, fmt.Errorf("intercept system calls: not known how on %s", runtime.GOARCH)
}

// Offsets into the kernel's struct seccomp_data. Its integers are little-endian on both
// architectures.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetFirstArg = 16
)

func (i intercept) filter(arch uint32) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// skip jumps over the given number of next statements, unless the loaded value is k.
	skip := func(k uint32, statements uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: statements}
	}
	end := func(verdict uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
	}
	ask, allow := end(unix.SECCOMP_RET_USER_NOTIF), end(unix.SECCOMP_RET_ALLOW)
	program := []unix.SockFilter{load(offsetArch), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1}, allow, load(offsetNumber)}
	if i.syncs {
		program = append(program, skip(unix.SYS_FSYNC, 1), ask, skip(unix.SYS_FDATASYNC, 1), ask)
	}
	if i.clock {
		program = append(program, skip(unix.SYS_CLOCK_GETTIME, 7), load(offsetFirstArg),
			skip(unix.CLOCK_BOOTTIME, 1), ask, skip(unix.CLOCK_MONOTONIC, 1), ask, skip(unix.CLOCK_REALTIME, 1), ask)
	}
	return append(program, allow)
}

// install puts the calling thread, and all processes that it starts from now on, under the
// filter. It returns the file that reports their calls. A thread can have one filter only.
func (i intercept) install() (*os.File, error) {
	arch, err := architecture()
	if err != nil {
		return nil, err
	}
	// Without this flag only root may install a filter. The flag keeps programs from gaining
	// rights when they are executed. No program here needs more rights.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("intercept system calls: %w", err)
	}
	statements := i.filter(arch)
	program := unix.SockFprog{Len: uint16(len(statements)), Filter: &statements[0]}
	var errno unix.Errno
	// With the first flag, only a kill interrupts a waiting call. Kernels before 5.19 do not
	// know this flag.
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0} {
		var fd uintptr
		fd, _, errno = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
			unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|flags, uintptr(unsafe.Pointer(&program)))
		if errno == 0 {
			if err := unix.SetNonblock(int(fd), true); err != nil {
				return nil, errors.Join(fmt.Errorf("intercept system calls: %w", err), unix.Close(int(fd)))
			}
			return os.NewFile(fd, "seccomp"), nil
		}
	}
	return nil, fmt.Errorf("intercept system calls: %w (it needs Linux 5.5 and seccomp)", errno)
}

// receive waits for the next call. It fails once the file is closed, or no process
// is under the filter any more.
func receive(file *os.File) (n notification, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return n, err
	}
	readErr := raw.Read(func(fd uintptr) bool {
		// In older kernels, receiving blocks even if the file is non-blocking.
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		switch ready, pollErr := unix.Poll(poll, 0); {
		case errors.Is(pollErr, unix.EINTR) || pollErr == nil && ready == 0:
			return false
		case pollErr != nil:
			err = pollErr
		case poll[0].Revents&unix.POLLIN == 0:
			err = os.ErrClosed // hung up
		default:
			n = notification{}
			err = control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
		}
		return true
	})
	if readErr != nil {
		err = readErr
	}
	return n, err
}

// respond answers a call. The calling process may have ended, which does no harm.
func respond(file *os.File, r response) {
	_ = fd.Use(file, func(fd int) error { return control(uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) })
}

func control(fd, request uintptr, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}
