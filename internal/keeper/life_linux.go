package keeper

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Available reports whether this system has what a keeper needs.
const Available = true

// pageVariable names the descriptor of the page in a life's environment.
const pageVariable = "DOYEN_KEEPER_PAGE"

// Become turns this process into the keeper of lives that run the program with the arguments.
// The first argument is the program's name. The keeper logs in that format, at that level.
// Become returns only if it fails.
func Become(program string, args []string, logFormat, logLevel string) error {
	self := "/proc/self/exe" // even if another file has taken the program's name
	if _, err := os.Stat(self); err != nil {
		self = program
	}
	if err := unix.Exec(self, append([]string{args[0], Word, logFormat + "," + logLevel, program}, args...), os.Environ()); err != nil {
		return fmt.Errorf("start keeper: %w", err)
	}
	return nil
}

// Attach returns the life's side of the page if this process has a keeper. The main function calls
// it once. It removes the variable, so that processes started by this one have no keeper.
func Attach() *Life {
	text := os.Getenv(pageVariable)
	_ = os.Unsetenv(pageVariable)
	fd, err := strconv.Atoi(text)
	if err != nil || fd <= 2 {
		return nil
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil {
		return nil // not a keeper's page: somebody else has set the variable
	}
	// Again: the kernel takes it back when a program file with capabilities is executed.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	signal.Ignore(syscall.SIGHUP) // the keeper passes it on once this life begins, and the agent may catch it later
	p, err := mapPage(fd)
	unix.Close(fd)
	if err != nil || p.magic != magic { // the keeper is of another version
		return &Life{page: new(page)}
	}
	if p.trial.can.Load() {
		unix.CloseOnExec(fd + 1)
	}
	return &Life{page: p, before: p.explained(), tried: fd + 1}
}

// newPage returns a page and its descriptor.
func newPage() (*page, int, error) {
	fd, err := unix.MemfdCreate("doyen-keeper", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, 0, fmt.Errorf("make the page: %w", err)
	}
	if err := unix.Ftruncate(fd, pageSize); err != nil {
		return nil, 0, fmt.Errorf("make the page: %w", err)
	}
	p, err := mapPage(fd)
	if err != nil {
		return nil, 0, err
	}
	p.magic = magic
	return p, fd, nil
}

func mapPage(fd int) (*page, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Size != pageSize {
		return nil, fmt.Errorf("map the page: its size is %d, %w", stat.Size, err)
	}
	mapped, err := unix.Mmap(fd, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the page: %w", err)
	}
	return (*page)(unsafe.Pointer(&mapped[0])), nil
}

// clear makes the page one that no life has written to.
func (p *page) clear() {
	p.next.Store(0)
	p.allowance.Store(0)
	p.state.Store(starting)
	p.known.length.Store(0)
}
