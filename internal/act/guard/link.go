package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/internal/base/wrap"
	"golang.org/x/sys/unix"
)

// Order is a message to a guard. A field marked "of stop" is used only by the order stop.
type Order struct {
	Do string `json:"do"`

	// Of start: what to run. An argument may have any bytes.
	Path  string   `json:"path,omitempty"`
	Args  [][]byte `json:"args,omitempty"`
	Env   []string `json:"env,omitempty"`   // added to the guard's environment
	Group int      `json:"group,omitempty"` // process group that the command joins; 0: it gets a separate one
	Nice  int      `json:"nice,omitempty"`
	// Standard means that the command's input and output come with the order, as two descriptors. If the command
	// then ends by itself, what it leaves running goes on.
	Standard    bool          `json:"standard,omitempty"`
	LeavesGroup bool          `json:"leaves_group,omitempty"` // with Standard: what the command leaves in its process group goes on too
	Grace       time.Duration `json:"grace,omitempty"`        // how long descendants may outlive the command
	Campaign    string        `json:"campaign,omitempty"`     // the campaign for which the guard gives the receipt; empty: it gives none

	Term     uint64   `json:"term,omitempty"` // of start and lease, as is Schedule
	Schedule Schedule `json:"schedule"`
	Signal   int      `json:"signal,omitempty"`  // of stop and signal; 0: none
	TermAt   int64    `json:"term_at,omitempty"` // of stop: when to send SIGTERM as well; 0: never
	KillAt   int64    `json:"kill_at,omitempty"` // of stop: when to send SIGKILL

	Copies int   `json:"copies,omitempty"` // how many descriptors come with the order
	files  []int // the received descriptors
}

// The values of Order.Do: what an order asks for.
const (
	Start   = "start"   // run the command, with an input and output or with a copy of the campaign's connection
	Keep    = "keep"    // replace the copy of the connection by the one that comes with the order
	Lease   = "lease"   // replace the schedule
	Stop    = "stop"    // end the command: send the signal now, and SIGKILL at kill_at
	Signal  = "signal"  // pass the signal to the command
	Prepare = "prepare" // get ready to receive a copy of the connection, and to send a receipt
)

// Report is a message from a guard. A field marked "of gone" is only in the report gone.
type Report struct {
	Kind   string `json:"kind"`
	Why    string `json:"why,omitempty"`    // of gone, failed and stuck: the reason
	Errno  int    `json:"errno,omitempty"`  // of failed: the system's error
	Status int    `json:"status,omitempty"` // of gone: the exit status, or 128 plus the signal
	Killed bool   `json:"killed,omitempty"` // of gone: SIGKILL was needed
	Others bool   `json:"others,omitempty"` // of gone: descendants outlived the command
}

// The values of Report.Kind.
const (
	Ready   = "ready"
	Started = "started"
	Failed  = "failed" // the command could not be started; nothing runs
	Gone    = "gone"   // the command has ended, and so have all descendants that it may not leave running
	Kills   = "kills"  // SIGKILL was sent for the first time
	Stuck   = "stuck"  // SIGKILL was sent and has had no effect so far
)

// The values of Report.Why in a report gone: why the command was ended.
const (
	ByItself = "itself"
	ByOrder  = "order"
	ByLease  = "lease" // the schedule ran out
	TooLate  = "late"  // the schedule had run out before the start, so nothing ran
)

// send writes a message to the socket between a guard and its parent, with copies of the
// descriptors. A message is one line of JSON.
func send(to *net.UnixConn, message any, fds ...int) error {
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	line = append(line, '\n')
	n, _, err := to.WriteMsgUnix(line, unix.UnixRights(fds...), nil)
	if err == nil && n < len(line) {
		_, err = to.Write(line[n:])
	}
	return wrap.Error(err, "send message")
}

// link is the guard's end of the socket.
type link struct {
	conn *net.UnixConn
	rest []byte
	fds  []int
}

// next returns an order that has arrived already; false: there is none.
func (l *link) next(o *Order) (ok bool, err error) {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return false, err
	}
	buffer, oob := make([]byte, 4096), make([]byte, maxRights)
	for {
		if line, rest, found := bytes.Cut(l.rest, []byte("\n")); found {
			l.rest = rest
			if err := json.Unmarshal(line, o); err != nil {
				return false, fmt.Errorf("decode message: %w", err)
			}
			return true, nil
		}
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

// listen signals on ready that there is something to receive, until the link is closed. The end of
// the other process counts as something to receive.
func (l *link) listen(ready chan<- struct{}) {
	raw, err := l.conn.SyscallConn()
	for err == nil {
		err = Readable(raw)
		ready <- struct{}{}
	}
}

// take returns the descriptors that came with a message. They arrive in the order of the messages.
func (l *link) take(n int) []int {
	n = min(n, len(l.fds))
	fds := l.fds[:n:n]
	l.fds = l.fds[n:]
	return fds
}

// maxRights is how many bytes the descriptors of one message may take.
var maxRights = unix.CmsgSpace(4 * 8)

// took stores received bytes and descriptors.
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

// errEnded means that the other process has ended.
var errEnded = errors.New("the other process is gone")

// Readable waits until there is something to read, or the other end has closed.
func Readable(raw syscall.RawConn) error {
	return raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n != 0 || err != nil
	})
}
