package keeper

import (
	"slices"
	"strings"
	"syscall"
	"time"
)

// act is the keeper's second child, which runs hooks and checks beside the life. It outlives a life, so that
// what it runs goes on. It ends last, so that it can undo what it has set up.
type act struct {
	needed  bool
	pid     int // 0: it does not run
	born    int64
	startAt int64 // when it is to be started next
	lives   lives
	ending  bool // it was asked to end
}

// actAgain is the wait before doyen act is started again after it has ended by itself, for example because
// another one acts for this agent.
const actAgain = 5 * time.Second

// buryFor is how long doyen act may still run while the record is being destroyed (K6): a disk that hangs must
// not keep doyen act running.
const buryFor = time.Second

// stepAct starts the second child if the life has reported that it is needed, and ends it once no life follows.
// If a reload leaves the child nothing to run, it runs on: it may still have to undo something.
func (k *keeper) stepAct(now int64) {
	a := &k.act
	if k.pid != 0 && k.page.state.Load() != starting {
		a.needed = knownFrom(k.page.told()).Act
	}
	over := k.pid == 0 && (k.code >= 0 || k.asked)
	switch {
	case a.pid != 0 && over && !a.ending && (k.burial == nil || now >= k.buryBy):
		a.ending = true
		_ = syscall.Kill(a.pid, syscall.SIGTERM)
	case a.pid == 0 && !over && !k.asked && a.needed && now >= a.startAt:
		k.startAct(now)
	}
	if k.forced && a.pid != 0 {
		_ = syscall.Kill(a.pid, syscall.SIGKILL)
	}
}

func (k *keeper) startAct(now int64) {
	a := &k.act
	pid, err := syscall.ForkExec(k.Program, append([]string{"doyen", "act"}, k.Act...), &syscall.ProcAttr{
		Env: k.bareEnvironment(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		k.logger.Error("doyen act can't be started: hooks and checks don't run", "program", k.Program, "err", err)
		a.startAt = now + int64(actAgain)
		return
	}
	a.pid, a.born, a.ending, a.startAt = pid, now, false, never
}

// bareEnvironment is the environment of a life, without the page and the notification socket.
func (k *keeper) bareEnvironment() []string {
	return slices.DeleteFunc(k.environment(), func(v string) bool {
		return strings.HasPrefix(v, pageVariable+"=") || strings.HasPrefix(v, notifyVariable+"=")
	})
}

func (k *keeper) actEnded(now int64, status syscall.WaitStatus) {
	a := &k.act
	lasted, asked := time.Duration(now-a.born), a.ending
	a.pid, a.ending = 0, false
	if asked { // no life follows
		return
	}
	wait := a.lives.ended(lasted, true, false)
	if status.Exited() {
		wait = actAgain
	}
	a.startAt = now + int64(wait)
	k.logger.Warn("doyen act has ended, starting it again", "after", lasted.Round(time.Millisecond), "in", wait, "why", describe(status, false, false))
}

// actWake is when stepAct is due next. A life that begins to need the second child wakes the keeper.
func (k *keeper) actWake(now int64) int64 {
	switch {
	case k.burial != nil && now < k.buryBy:
		return k.buryBy
	case k.act.needed && k.act.pid == 0 && !k.asked:
		return k.act.startAt
	}
	return never
}
