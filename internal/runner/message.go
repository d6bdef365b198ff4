package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// order is a message from the runner to the guard.
type order struct {
	Do       string        `json:"do"`
	Schedule schedule      `json:"schedule"` // of start and lease, as Term is
	Term     uint64        `json:"term,omitempty"`
	Campaign string        `json:"campaign,omitempty"` // of start
	Grace    time.Duration `json:"grace,omitempty"`    // of start: for descendants that outlive the command
	Signal   int           `json:"signal,omitempty"`   // of stop and signal; 0: none
	TermAt   int64         `json:"term_at,omitempty"`  // of stop: when to send SIGTERM as well; 0: not
	KillAt   int64         `json:"kill_at,omitempty"`  // of stop
	Notify   string        `json:"notify,omitempty"`   // of start: the command's NOTIFY_SOCKET
	Copy     int           `json:"-"`                  // of start and keep, received: the connection's; -1: none
}

// What an order asks for.
const (
	doStart   = "start"   // the command, with the connection's copy that comes along
	doKeep    = "keep"    // the connection's copy that comes along, instead of the former one's
	doLease   = "lease"   // keep another schedule
	doStop    = "stop"    // end the command: the signal now, SIGKILL at kill_at
	doSignal  = "signal"  // pass the signal on
	doNothing = "nothing" // see warm
)

// report is a message from the guard to the runner.
type report struct {
	Kind   string `json:"kind"`
	Why    string `json:"why,omitempty"`    // of gone, failed and stuck
	Errno  int    `json:"errno,omitempty"`  // of failed
	Status int    `json:"status,omitempty"` // of gone: the exit status, or 128 and the signal
	Killed bool   `json:"killed,omitempty"` // of gone: SIGKILL was needed
	Others bool   `json:"others,omitempty"` // of gone: descendants outlived the command
}

// The kinds of a report.
const (
	isReady   = "ready"
	isStarted = "started"
	isFailed  = "failed" // the command could not be started; nothing runs
	isGone    = "gone"   // neither the command nor a descendant is left
	isStuck   = "stuck"  // SIGKILL was sent and has had no effect so far
)

// Why a command is gone.
const (
	byItself = "itself"
	byOrder  = "order"
	byLease  = "lease" // the schedule ran out
	tooLate  = "late"  // the schedule had run out before the start: nothing ran
)

// maxMessage bounds one message, in bytes.
const maxMessage = 4096

// link is one end of the socket between runner and guard. Each message is one line of
// JSON, written at once.
type link struct {
	conn *net.UnixConn
	rest []byte
	fds  []int
}

// send writes a message, with a copy of the descriptor if fd is not negative.
func (l *link) send(message any, fd int) error {
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	_, _, err = l.conn.WriteMsgUnix(append(line, '\n'), rights, nil)
	if err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	return nil
}

// receive reads the next message into v. It fails when the other process is
// gone.
func (l *link) receive(v any) error {
	for {
		if ok, err := l.cut(v); ok || err != nil {
			return err
		}
		buffer, oob := make([]byte, maxMessage), make([]byte, maxRights)
		n, oobn, _, _, err := l.conn.ReadMsgUnix(buffer, oob)
		if err == nil {
			err = l.took(buffer[:n], oob[:oobn])
		}
		if err != nil {
			return err
		}
	}
}

// next receives a message if one has come in already, and returns false if not.
func (l *link) next(v any) (ok bool, err error) {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return false, err
	}
	for {
		if ok, err := l.cut(v); ok || err != nil {
			return ok, err
		}
		buffer, oob := make([]byte, maxMessage), make([]byte, maxRights)
		var n, oobn int
		fault := raw.Control(func(fd uintptr) { n, oobn, _, _, err = unix.Recvmsg(int(fd), buffer, oob, unix.MSG_DONTWAIT) })
		switch {
		case fault != nil:
			return false, fault
		case errors.Is(err, unix.EAGAIN):
			return false, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil:
			err = l.took(buffer[:n], oob[:oobn])
		}
		if err != nil {
			return false, err
		}
	}
}

// listen reports on ready, until the link is closed, that there is something to receive. The
// end of the other process counts too.
func (l *link) listen(ready chan<- struct{}) {
	raw, err := l.conn.SyscallConn()
	for err == nil {
		err = readable(raw)
		ready <- struct{}{}
	}
}

// cut takes the first message out of what has come in, if it is complete.
func (l *link) cut(v any) (ok bool, err error) {
	line, rest, ok := cutLine(l.rest)
	switch {
	case !ok && len(l.rest) > maxMessage:
		return false, errors.New("receive message: it has no end")
	case !ok:
		return false, nil
	}
	l.rest = rest
	if err := json.Unmarshal(line, v); err != nil {
		return false, fmt.Errorf("decode message: %w", err)
	}
	return true, nil
}

// take returns the descriptor that came with a message, or -1. Those that have one
// each have one, and come in their order.
func (l *link) take() int {
	if len(l.fds) == 0 {
		return -1
	}
	fd := l.fds[0]
	l.fds = l.fds[1:]
	return fd
}

// maxRights bounds the descriptors of one message, in bytes.
var maxRights = unix.CmsgSpace(4 * 8)

// took keeps what has come in.
func (l *link) took(data, oob []byte) error {
	if len(data) == 0 && len(oob) == 0 {
		return errEnded
	}
	l.rest = append(l.rest, data...)
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("receive descriptor: %w", err)
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fmt.Errorf("receive descriptor: %w", err)
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
		}
		l.fds = append(l.fds, fds...)
	}
	return nil
}

// errEnded is the end of the other process.
var errEnded = errors.New("the other process is gone")

func cutLine(b []byte) (line, rest []byte, ok bool) {
	for i, c := range b {
		if c == '\n' {
			return b[:i], b[i+1:], true
		}
	}
	return nil, b, false
}
