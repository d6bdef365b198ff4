package record

import (
	"errors"
	"fmt"
)

var (
	errNoFile    = errors.New("it is not a regular file")
	errSize      = errors.New("something else has changed its size")
	errNoRecord  = errors.New("it is not a record")
	errOtherBoot = errors.New("it is from an earlier boot of the host")
	errOtherTime = errors.New("it is from another time namespace, which has another clock")
	errSuspended = errors.New("the host was suspended since, so its deadlines may be wrong")
	errOtherFile = errors.New("it is a copy: the record was another file")
	errDamaged   = errors.New("it is damaged")
	errDestroyed = errors.New("its lineage was ended")
	errLives     = errors.New("too many lives have had it")
	errLocked    = errors.New("another process has locked it")
	errMoved     = errors.New("the record has ended")
)

// formatError reports a record that another version of doyen wrote.
type formatError uint32

func (e formatError) Error() string {
	return fmt.Sprintf("its format is %d, and this agent has %d", uint32(e), Format)
}

// otherPeerError reports the record of another agent.
type otherPeerError string

func (e otherPeerError) Error() string {
	return fmt.Sprintf("it belongs to another agent (%s)", string(e))
}

// accessError reports a file that other users than the agent's may change or read.
type accessError struct {
	mode uint32
	uid  uint32
}

func (e accessError) Error() string {
	return fmt.Sprintf("others than this agent's user may use it (mode %04o, user %d)", e.mode, e.uid)
}

// memoryError reports a directory whose files outlive the kernel, or may do so.
type memoryError string

func (e memoryError) Error() string {
	return fmt.Sprintf("%s is not in memory (tmpfs)", string(e))
}
