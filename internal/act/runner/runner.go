package runner

import (
	"context"
	"math"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

const (
	// standTimeout bounds one attempt to become a candidate. If the agent is frozen, the kernel
	// accepts the connection, and no answer comes.
	standTimeout = 5 * time.Second
	// receiptTimeout bounds the sending of a receipt.
	receiptTimeout = time.Second
	firstRetry     = 50 * time.Millisecond
	lastRetry      = 2 * time.Second
	// never is later than any deadline.
	never = int64(math.MaxInt64)
)

// state is the state of the present run of the command.
type state int

const (
	idle     state = iota // neither the command nor a descendant is left
	starting              // the start was ordered, and the guard has not reported it yet
	running
	stopping // the end was ordered
)

// runner is one call of Run. Its loop is one goroutine. Other goroutines wait for events on its behalf.
//
// Invariants: the command is ordered to start only while leading is true. The receipt is given only
// in state idle. owed is true from the elected line until the receipt is given or the candidacy
// ends.
type runner struct {
	Config
	ctx      context.Context // everything that waits ends with it
	ask      <-chan struct{} // closed to ask for the end; nil once the loop has seen that
	terminal bool
	group    int // process group that the command joins; 0: a separate one
	nice     int // nice value of the command
	guard    *guard.Guard
	ready    bool   // the guard has reported that it is ready
	unfit    string // why this host may not be a candidate; empty: it may
	children chan os.Signal
	alarm    *alarm.Alarm
	calls    chan func() // functions for the loop to run, from the goroutines that wait for it

	progress progress
	noticed  chan *notices

	candidacy *client.Candidacy
	over      bool // the candidacy's connection has ended, or its lines don't count any more
	asking    bool // an attempt to become a candidate is in progress
	resuming  bool // the agent has died, and the candidacy is being resumed with the agent's next process run
	back      bool // the candidacy was resumed, and no line has been read since
	met       bool // this host has been a candidate before
	retry     time.Duration
	complaint string // the last reported problem; reset when this host is a candidate
	explained string // the last reported reason why this host is not elected; reset when it is elected

	leading bool
	view    bool // the leadership is without a quorum: others lead as soon as the agent has ended
	owed    bool
	revoked bool   // the agent has sent a revoked line
	why     string // why this host gives up the lead without being asked
	term    uint64
	late    uint64        // a term whose elected line was read after its deadline
	given   *api.Word     // the word in the newest elected line
	until   int64         // the newest deadline received
	lease   time.Duration // the longest time that was ever left of the lease

	state     state
	announced uint64 // the term under which the command was started last
	stopped   int64  // when the last order to stop was given
	killAt    int64  // when SIGKILL is due by the last order to stop
	began     int64
	woken     int64 // the time for which the alarm was set last
	ends      int   // how many times in a row the command has ended by itself soon after its start
	notBefore int64 // the command is not started before this time

	timedOut bool // the command was ended because of Timeout

	task *task // nil: the command runs for as long as this host leads

	ending  bool
	signals int // how many signals have asked for the end
	status  int
	fault   error
}

// Run campaigns in the election and runs the command while this host leads. Run ends when a signal asks for it,
// when the command ends and Restart does not start it again, when Try or Job ends it, or when the agent refuses
// the candidacy at the start. Run returns the command's exit status, or 128 plus the number of the signal that
// killed the command. If a signal ended Run and Status is not set, it returns 0. Try and Job have other
// statuses.
//
// All Signals are passed on to the command. SIGINT, SIGTERM, SIGQUIT, and at a terminal SIGHUP also end Run
// once the command has ended. The second of them kills the command at once.
//
// Errors are *CommandError if the command can't be run, *client.UnreachableError and
// *client.APIError if the agent can't be asked or refuses at the start.
//
// Run takes over this process: it makes the process a subreaper, waits for every child, and kills
// every descendant at the end.
func Run(ctx context.Context, c Config) (status int, err error) {
	c, err = c.resolve()
	if err != nil {
		return 0, err
	}
	defer c.speak()()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &runner{Config: c, ctx: life, ask: ctx.Done(), calls: make(chan func()), children: make(chan os.Signal, 1),
		progress: progress{dueAt: never}, noticed: make(chan *notices)}
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil {
		r.terminal, r.group = true, unix.Getpgrp()
	}
	if err := guard.Adopt(); err != nil {
		return 0, err
	}
	signal.Notify(r.children, syscall.SIGCHLD)
	defer signal.Stop(r.children)
	if r.alarm, err = alarm.New(); err != nil {
		return 0, err
	}
	defer r.alarm.Close()
	r.nice = guard.Hurry()
	if r.guard, err = guard.New(environment(c)); err != nil {
		return 0, err
	}
	if c.Job != nil {
		r.task = &task{Job: c.Job}
	}
	if c.Try {
		if why := r.otherLeader(""); why != "" {
			r.say("not started: %s", why)
			r.ending, r.status = true, StatusOtherLeads
		}
	}
	r.startCheck()
	r.loop()
	if r.candidacy != nil {
		r.candidacy.Close()
	}
	cancel()
	r.purge()
	return r.status, r.fault
}

// loop handles one event after another, and calls follow after each.
func (r *runner) loop() {
	for !r.follow(alarm.Now()) {
		r.woken = r.wakeAt(alarm.Now())
		r.alarm.Set(r.woken)
		select {
		case <-r.ask:
			r.ask = nil
			r.end(0)
		case s := <-r.Signals:
			r.signal(s.(syscall.Signal))
		case f := <-r.calls:
			f()
		case report, ok := <-r.guard.Reports:
			r.learn(report, ok)
		case <-r.children:
			guard.Reap(func(int, unix.WaitStatus) {}) // the guard's end is seen by its Reports, not here
		case n := <-r.noticed:
			if n == r.progress.notices {
				r.heed(alarm.Now())
			}
		case <-r.alarm.C:
			if now := alarm.Now(); r.state != idle && now >= r.lateAt() {
				r.overdue(now)
			}
		}
	}
}

// call makes the loop run f.
func (r *runner) call(f func()) {
	select {
	case r.calls <- f:
	case <-r.ctx.Done():
	}
}

// follow does what the present state requires. It returns true when Run has to end.
func (r *runner) follow(now int64) bool {
	r.watch(now)
	r.tick(now)
	if r.state == running && (!r.leading || r.ending) {
		r.stop(now)
	}
	if r.state == running && now >= r.timeoutAt(r.began) {
		r.say("%s has run for %v: stopping it", r.name(), r.Timeout)
		r.timedOut = true
		r.stop(now)
	}
	if r.state != idle {
		return false
	}
	if r.leading && now >= r.until {
		r.over = true
		r.lose("its lease ended and nobody renewed it", false)
	}
	if r.owed && (!r.leading || r.ending) {
		if r.settling(now) {
			return false
		}
		r.giveReceipt()
	}
	switch {
	case r.ending:
		return true
	case !r.ready: // without a guard the command can be neither started nor ended
	case r.unfit != "":
		r.withdraw()
	case r.mayStart(now):
		r.notBefore = 0
		r.start(now)
	case (r.candidacy == nil || r.over) && !r.asking:
		r.stand()
	}
	return false
}

// overdue ends a command that its guard has not ended in time. But if this process did not run, the guard may
// have been in time, and its report is still unread.
func (r *runner) overdue(now int64) {
	if still, own := r.stoodStill(now); own {
		select {
		case report, ok := <-r.guard.Reports:
			r.learn(report, ok)
			return
		case <-time.After(guard.Again):
		}
		r.say("doyen run got no processor time for %v, or its host was paused: killing its guard and everything it started", still.Round(time.Millisecond))
	} else {
		r.say("the guard is late: killing it and everything it started")
	}
	r.loseGuard()
}

// stoodStill returns how much later than its alarm this process runs. own is true if this process is so late
// that the guard may have been in time.
func (r *runner) stoodStill(now int64) (still time.Duration, own bool) {
	still = time.Duration(now - r.woken)
	return still, still > guard.Margin(r.lease)/2
}

// wakeAt is when the loop has something to do even if no event comes.
func (r *runner) wakeAt(now int64) int64 {
	wake := never
	switch r.state {
	case stopping:
		return min(wake, r.lateAt())
	case starting, running:
		return min(wake, r.lateAt(), r.progress.dueAt, r.timeoutAt(r.began))
	}
	if r.notBefore > now {
		wake = r.notBefore
	}
	if r.owed {
		wake = min(wake, r.until)
	}
	return min(wake, r.jobAt(now))
}

// lateAt is when the guard counts as too late to end the command: halfway between the planned
// kill and the end of the lease.
func (r *runner) lateAt() int64 {
	due := guard.Plan(r.until, r.lease).KillAt
	if r.state == stopping {
		due = max(min(due, r.killAt), r.stopped)
	}
	return due + min(int64(guard.Margin(r.lease)/2), max(0, r.until-due)/2)
}

// mayStart reports whether the command may be started. It may not during the pause after an end, nor so late in
// the lease that it would have to end at once.
func (r *runner) mayStart(now int64) bool {
	return (r.task == nil || r.task.due != nil) && r.leading && !r.resuming && now >= r.notBefore && now < guard.Plan(r.until, r.lease).TermAt
}

func (r *runner) start(now int64) {
	var of []string
	what := ""
	if r.task != nil {
		of, what = r.task.starts()
	}
	if r.announced != r.term || what != "" {
		r.say("elected to lead %s, term %d: starting %s%s", r.Election, r.term, r.name(), what)
	}
	r.state, r.began, r.announced, r.timedOut = starting, now, r.term, false
	notify, err := r.expect(now)
	if err != nil {
		r.say("%v", err)
		r.state = idle
		r.ended(statusNotRunnable)
		return
	}
	o := guard.Order{Do: guard.Start, Path: r.path, Group: r.group, Nice: r.nice, Env: []string{"DOYEN_TERM=" + strconv.FormatUint(r.term, 10)},
		Term: r.term, Campaign: r.candidacy.ID(), Schedule: guard.Plan(r.until, r.lease), Grace: r.Grace}
	o.Env = append(o.Env, of...)
	for _, arg := range r.args() {
		o.Args = append(o.Args, []byte(arg))
	}
	if notify != "" {
		o.Env = append(o.Env, "NOTIFY_SOCKET="+notify)
	}
	if r.Watchdog > 0 {
		o.Env = append(o.Env, "WATCHDOG_USEC="+strconv.FormatInt(r.Watchdog.Microseconds(), 10))
	}
	if err := r.guard.Send(o, r.candidacy); err != nil {
		r.loseGuard()
	}
}

// stop makes the guard end the command, in time for the lease.
func (r *runner) stop(now int64) {
	r.state, r.stopped = stopping, now
	r.killAt = min(now+int64(r.Grace), guard.Plan(r.until, r.lease).KillAt)
	r.guard.Tell(guard.Order{Do: guard.Stop, Signal: int(syscall.SIGTERM), KillAt: r.killAt})
}

// loseGuard kills a guard that does not work as it should, with all its descendants.
func (r *runner) loseGuard() {
	r.purge()
	r.learn(guard.Report{}, false)
}

// purge ends the guard, and kills and reaps until no descendant is left. It also kills a run of the check,
// which is then repeated.
func (r *runner) purge() {
	r.guard.Close()
	began, again := alarm.Now(), guard.Again
	for !guard.Reap(func(int, unix.WaitStatus) {}) {
		err := guard.KillFamily(0)
		if again == guard.Again && alarm.Now()-began > int64(guard.StuckAfter) {
			again = guard.StuckAfter
			r.say("%s; a successor waits for the lease to end", guard.Blocked(err))
		}
		select {
		case <-r.children:
		case <-time.After(again):
		}
	}
}

// listen passes each line of the agent, and the end of the lines, to the loop.
func (r *runner) listen(from *client.Candidacy) {
	for {
		event, err := from.Next(r.ctx)
		r.call(func() {
			if from == r.candidacy && !r.over {
				r.hear(event, err)
			}
		})
		if err != nil {
			return
		}
	}
}
