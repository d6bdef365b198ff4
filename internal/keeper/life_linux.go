package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/doyen-election/doyen/internal/base/wrap"
	"golang.org/x/sys/unix"
)

// Available is true on Linux, which has what a keeper needs.
const Available = true

// pageVariable is the environment variable in which a life finds the descriptor of the page.
const pageVariable = "DOYEN_KEEPER_PAGE"

// Become turns this process into the keeper. It returns only if that fails.
func Become(g Given) error {
	self := "/proc/self/exe" // leads to the running program, even if another file has its name by now
	if _, err := os.Stat(self); err != nil {
		self = g.Program
	}
	return wrap.Error(unix.Exec(self, append([]string{g.Args[0], Word}, g.words()...), os.Environ()), "start keeper")
}

// words returns the arguments of the keeper's process. given reverses it.
func (g Given) words() []string {
	words := []string{g.LogFormat, g.LogLevel, g.Program, g.Record, g.Lock, g.Pages, strconv.Itoa(len(g.Act))}
	return slices.Concat(words, g.Act, g.Args)
}

func given(words []string) (Given, error) {
	const counted = 6
	if len(words) > counted {
		acts, err := strconv.Atoi(words[counted])
		if rest := words[counted+1:]; err == nil && acts >= 0 && acts < len(rest) {
			return Given{LogFormat: words[0], LogLevel: words[1], Program: words[2], Record: words[3], Lock: words[4],
				Pages: words[5], Act: rest[:acts], Args: rest[acts:]}, nil
		}
	}
	return Given{}, errors.New("only doyen agent can start it")
}

// Attach returns the life's side of the page; nil: this process has no keeper. The main function calls it once.
// It removes the environment variable, so that no child of this process believes that it is a life.
func Attach() *Life {
	text := os.Getenv(pageVariable)
	_ = os.Unsetenv(pageVariable)
	fd, err := strconv.Atoi(text)
	if err != nil || fd <= 2 {
		return nil
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil {
		return nil // not a keeper's page: another program has set the variable
	}
	// The keeper has set this, but if the program file has capabilities, the kernel resets it.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	signal.Ignore(syscall.SIGHUP) // the keeper passes SIGHUP on as soon as this life begins, but the agent may catch it only later
	p, err := mapPage(fd)
	unix.Close(fd)
	if err != nil || p.magic != magic { // the keeper has another version of the page
		return &Life{page: new(page)}
	}
	if p.trial.can.Load() {
		unix.CloseOnExec(fd + 1)
	}
	return &Life{page: p, before: p.explained(), tried: fd + 1}
}

// newMemory returns a file in memory whose size nobody can change: if a life could make the page's file
// shorter, its keeper would die.
func newMemory(name string, size int64) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		err = unix.Ftruncate(fd, size)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	return fd, wrap.Error(err, "share memory with the agent")
}

// newPage returns a new page and its descriptor.
func newPage() (*page, int, error) {
	fd, err := newMemory("doyen-keeper", pageSize)
	if err != nil {
		return nil, 0, err
	}
	p, err := mapPage(fd)
	return p, fd, err
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

// clear empties the page for the next life, and stores in it how the former life ended.
func (p *page) clear(why string) {
	clear(unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p)))
	p.magic = magic
	p.trial.can.Store(true)
	p.explain(why)
}
