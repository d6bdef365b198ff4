package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/internal/alarm"
)

// stateVariable has what a keeper hands to the one that it turns into, as text has it. It begins
// with stateVersion, which differs for any change, and the life's process, in all versions.
const (
	stateVariable = "DOYEN_KEEPER_STATE"
	stateVersion  = 1
)

// handed is what a keeper hands over, besides its arguments and its environment.
type handed struct {
	pid    int // of the life; 0: nothing was handed over
	page   int // descriptors
	notify int // -1: there is no service manager that wants to be notified
	born   int64
	at     int64 // when it was handed over
	lives  lives
}

func (h handed) text() string {
	return fmt.Sprint(stateVersion, " ", h.pid, " ", h.page, " ", h.notify, " ", h.born, " ", h.at, " ",
		h.lives.short, " ", h.lives.failed, " ", h.lives.ran, " ", h.lives.patience)
}

// takeOver returns what the keeper that this process was before has handed over. With an error too
// it returns the life's process, if there is one.
func takeOver() (handed, error) {
	text, found := os.LookupEnv(stateVariable)
	_ = os.Unsetenv(stateVariable)
	if !found {
		return handed{notify: -1}, nil
	}
	var h handed
	version := 0
	_, err := fmt.Sscan(text, &version, &h.pid, &h.page, &h.notify, &h.born, &h.at,
		&h.lives.short, &h.lives.failed, &h.lives.ran, &h.lives.patience)
	if h.pid <= 0 || unix.Waitid(unix.P_PID, h.pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != nil {
		return handed{}, fmt.Errorf("what was handed over (%s=%q) has no agent of this process", stateVariable, text)
	}
	if err != nil || version != stateVersion {
		return handed{pid: h.pid}, fmt.Errorf("what was handed over (%s=%q) can't be read: the agent is stopped", stateVariable, text)
	}
	return h, nil
}

// end ends the life of a keeper that can't go on, in order: it hands over what it leads.
func (h handed) end() {
	if h.pid == 0 || syscall.Kill(h.pid, syscall.SIGTERM) != nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := syscall.Wait4(h.pid, nil, 0, nil); err != syscall.EINTR {
				return
			}
		}
	}()
	select {
	case <-ended:
	case <-time.After(startLimit): // it ends with this process
	}
}

// adopt makes the life that was handed over this keeper's.
func (k *keeper) adopt(h handed, now int64) (err error) {
	if _, err = unix.FcntlInt(uintptr(h.page), unix.F_GET_SEALS, 0); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	unix.CloseOnExec(h.page)
	if k.page, err = mapPage(h.page); err != nil {
		return err
	}
	if k.page.magic != magic {
		return errors.New("the page that was handed over has another layout")
	}
	k.fd, k.pid, k.born, k.lives, k.compared = h.page, h.pid, h.born, h.lives, true
	k.watch.due = now + int64(tickEvery)
	return nil
}

// upgrade turns this process into a keeper of the program that the life runs, if that is another
// one, once the life is well and leads nothing: then neither a signal in the exec nor one that fails
// costs a leadership. It is called by the main thread, which has started the life: the kernel ends
// a life with that thread, and it is the only one that an exec leaves.
func (k *keeper) upgrade(now int64) {
	if k.compared || k.pid == 0 || k.asked || k.hung || k.burial != nil || k.page.state.Load() != running ||
		k.page.known.length.Load() == 0 || k.watch.checks > 0 || now-k.born < int64(shortLife) || k.page.leads.Load() >= now {
		return
	}
	k.compared = true
	fd, err := k.successor()
	if fd < 0 && err == nil {
		return
	}
	if err == nil {
		defer unix.Close(fd)
		err = k.become("/proc/self/fd/" + strconv.Itoa(fd))
	}
	if err != nil {
		k.logger.Warn("this keeper can't turn into that of the agent's program, and goes on", "program", k.program, "err", err)
	}
}

// successor returns a descriptor of the file that the life runs. It is negative if this process runs it too.
func (k *keeper) successor() (int, error) {
	if k.page.takes.Load()&(1<<stateVersion) == 0 {
		return -1, errors.New("that program can't take over what this keeper has to hand over")
	}
	told := file{k.page.device.Load(), k.page.inode.Load()}
	own, err := fileOf(unix.Stat, "/proc/self/exe")
	if err != nil || own == told {
		return -1, err
	}
	if os.Getpid() == 1 {
		return -1, errors.New("the kernel drops the signals of a first process that starts")
	}
	fd, err := unix.Open(k.program, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	found, err := fileOf(unix.Fstat, fd)
	if err == nil && found != told {
		err = errors.New("the program file was replaced after the agent's start")
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// file tells files of a host apart.
type file struct{ device, inode uint64 }

func fileOf[T any](stat func(T, *unix.Stat_t) error, of T) (file, error) {
	var s unix.Stat_t
	err := stat(of, &s)
	return file{uint64(s.Dev), s.Ino}, err
}

// become executes the program. It returns nil if something else is to be done first.
//
// Go can't hold SIGTERM and SIGINT back across an exec: its runtime unblocks them before it catches
// them. What came before is handled here, and from then on they end this process, and the life with
// it, until the new program catches them. The others are ignored meanwhile: none may end a life.
func (k *keeper) become(program string) error {
	k.notify.hold()
	defer k.notify.release()
	defer k.catch()
	signal.Stop(k.others)
	signal.Ignore(others...)
	signal.Stop(k.ends) // what was caught is in the channel then
	if len(k.ends)+len(k.others) > 0 {
		k.compared = false
		return nil
	}
	h := handed{pid: k.pid, page: k.fd, notify: k.notify.socket(), born: k.born, at: alarm.Now(), lives: k.lives}
	for _, fd := range []int{h.page, h.notify} {
		if fd >= 0 {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
			defer unix.CloseOnExec(fd)
		}
	}
	return unix.Exec(program, os.Args, append(os.Environ(), stateVariable+"="+h.text()))
}
