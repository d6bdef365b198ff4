package record

import (
	"errors"
	"fmt"
	"io/fs"
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

// accessError reports a file that is of another user, or that other users may change or read.
func accessError(mode fs.FileMode, uid uint32) error {
	return fmt.Errorf("others than this agent's user may use it (mode %04o, user %d)", mode.Perm(), uid)
}
