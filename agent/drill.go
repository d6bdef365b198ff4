package agent

import (
	"errors"
	"os"
	"syscall"
)

// Lasts reports whether the next life would go on leading, and whether a service manager started
// this agent.
func (c commands) Lasts() (record, service bool) {
	return c.agent.record.Kept(), os.Getenv("NOTIFY_SOCKET") != ""
}

// Mortal returns why this process can't be killed for a drill; nil: it can.
func (c commands) Mortal() error {
	select {
	case <-c.agent.leaving:
		return errors.New("this agent is stopping")
	case <-c.agent.restarts:
		return errors.New("this agent is restarting")
	default:
	}
	if c.agent.cfg.Program == "" {
		return errors.New("this agent is part of another program, which would be killed too")
	}
	return nil
}

// Die ends this process as kill -9 does: nothing is handed over, written or closed.
func (c commands) Die() {
	c.agent.logger.Warn("this agent kills itself: a drill was asked for")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	os.Exit(128 + int(syscall.SIGKILL)) // PID 1 does not die of its own signals
}
