package keeper

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	trialLimit   = 8 * time.Second      // how long a trial may take: it reads only a few files
	maxTried     = 1 << 20              // how many bytes a trial may print
	outcomeEvery = 5 * time.Millisecond // how often a life checks whether the trial has an outcome
)

// trial is a run of the program file with --check-config, for a life that can't start processes itself.
type trial struct {
	out   int    // descriptor of what the program prints
	begun uint64 // number of the last request that was started
	pid   int    // 0: no trial runs
	endBy int64  // when the trial is to be killed; never: none runs, or it was killed
}

// stepTrial starts the trial that the life has asked for, and kills a trial that takes too long.
func (k *keeper) stepTrial(now int64) {
	t := &k.trial
	asked := k.page.trial.asked.Load()
	switch {
	case t.pid != 0 && now >= t.endBy:
		t.endBy = never
		_ = syscall.Kill(t.pid, syscall.SIGKILL)
	case t.pid == 0 && k.pid != 0 && asked != t.begun:
		t.begun, t.endBy = asked, now+int64(trialLimit)
		_ = unix.Fallocate(t.out, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, maxTried)
		_, _ = unix.Seek(t.out, 0, 0)
		pid, err := k.bare.start(k.Program, checked(k.Args), &syscall.ProcAttr{
			Env: k.bareEnvironment(), Files: []uintptr{0, uintptr(t.out), uintptr(t.out)}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
		})
		if t.pid = pid; err != nil {
			errno, _ := errors.AsType[syscall.Errno](err)
			k.tried(errno, 0)
		}
	}
}

// checked returns the arguments with which the program checks its configuration.
func checked(args []string) []string {
	flagsEnd := slices.Index(args, "--")
	if flagsEnd < 0 {
		flagsEnd = len(args)
	}
	return slices.Insert(slices.Clone(args), flagsEnd, "--check-config", "--output", "json")
}

// tried passes the outcome of the trial to the life.
func (k *keeper) tried(errno syscall.Errno, status syscall.WaitStatus) {
	k.trial.pid, k.trial.endBy = 0, never
	p := &k.page.trial
	p.errno.Store(uint32(errno))
	p.ends.Store(uint32(status))
	p.done.Store(k.trial.begun)
}

// Try makes the keeper run the present program file with this life's arguments and --check-config, and
// returns what it prints. If the program can't be started, err is a syscall.Errno.
func (l *Life) Try(ctx context.Context) (printed []byte, err error) {
	l.trials.Lock()
	defer l.trials.Unlock()
	p := &l.page.trial
	if !p.can.Load() {
		return nil, ErrOlder
	}
	request := p.asked.Add(1)
	l.calls()
	for again := time.NewTicker(outcomeEvery); p.done.Load() != request; {
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if errno := syscall.Errno(p.errno.Load()); errno != 0 {
		return nil, errno
	}
	printed = make([]byte, maxTried)
	if _, err := unix.Pread(l.tried, printed, 0); err != nil {
		return nil, err
	}
	printed = bytes.TrimRight(printed, "\x00\n")
	if status := syscall.WaitStatus(p.ends.Load()); status != 0 {
		err = errors.New(describe(status, false, false))
	}
	return printed, err
}
