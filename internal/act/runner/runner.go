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
	// standTimeout bounds one attempt to become a candidate: a frozen agent's kernel accepts
	// the connection, and no answer comes.
	standTimeout = 5 * time.Second
	// receiptTimeout bounds giving a receipt.
	receiptTimeout = time.Second
	firstRetry     = 50 * time.Millisecond
	lastRetry      = 2 * time.Second
	// never is after every deadline.
	never = int64(math.MaxInt64)
)

// state is how far the present run of the command has come.
type state int

const (
	idle     state = iota // neither the command nor a descendant is left
	starting              // the start is ordered and not answered
	running
	stopping // the end is ordered
)

// runner is one Run. Its loop is one goroutine, for which the others do the waiting.
//
// Invariants: the command is ordered to start only while leading is set; the receipt is
// given only in state idle; owed is true from the elected line to the receipt or to the
// end of the candidacy.
type runner struct {
	Config
	ctx      context.Context // its end ends everything that waits
	ask      <-chan struct{} // closed to ask for the end; nil once that was seen
	terminal bool
	group    int // process group the command joins; 0: a separate one
	nice     int // of the command
	guard    *guard.Guard
	ready    bool        // the guard has reported that it is ready
	verdicts chan string // why this host is not fit, or empty
	unfit    string      // why it may not be a candidate; empty: it may
	children chan os.Signal
	alarm    *alarm.Alarm
	attempts chan attempt
	heard    chan hearing
	resumed  chan attempt
	waits    chan waiting

	progress progress
	noticed  chan *notices

	candidacy *client.Candidacy
	over      bool // the candidacy's connection ended, or its lines don't count any more
	asking    bool // an attempt is under way
	resuming  bool // the agent died, and the candidacy is being taken up with its next process run
	back      bool // it was, and no line was read since
	met       bool // it was a candidate once
	retry     time.Duration
	complaint string // the last one reported since this host was a candidate
	explained string // the last reason reported, since this host led, why it is not elected

	leading bool
	view    bool // there is no quorum behind it: others lead as soon as the agent is gone
	owed    bool
	revoked bool   // the agent has sent a revoked line
	why     string // why this host gives up the lead unasked
	term    uint64
	late    uint64        // a term whose elected line was read after its deadline
	until   int64         // the newest deadline received
	lease   time.Duration // the longest time that was ever left of the lease

	state     state
	announced uint64 // the term of the last start
	stopped   int64  // when the newest order to stop was given
	killAt    int64  // when that order wants SIGKILL
	began     int64
	woken     int64 // what the alarm was set to last
	ends      int   // how often in a row the command ended by itself soon after its start
	notBefore int64 // no start until then

	ending  bool
	signals int // how many asked for the end
	status  int
	fault   error
}

// Run campaigns in the election and runs the command while it leads. Run ends when a signal
// asks for the end, when the command ends and Restart says so, or when the agent refuses it
// at the start. It returns the command's exit status if Status asks for that, or 128 plus
// the number of the signal that killed the command; else 0.
//
// All Signals are passed on. SIGINT, SIGTERM and SIGQUIT, and at a terminal SIGHUP, also end
// Run once the command has ended. A second one does not wait for that.
//
// Errors are *CommandError if the command can't be run, *client.UnreachableError and
// *client.APIError if the agent can't be asked or refuses at the start.
//
// Run takes over the process: it makes it a subreaper, waits for every child and has
// every descendant killed at the end.
func Run(ctx context.Context, c Config) (status int, err error) {
	c, err = c.resolve()
	if err != nil {
		return 0, err
	}
	defer c.speak()()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &runner{Config: c, ctx: life, ask: ctx.Done(), attempts: make(chan attempt), heard: make(chan hearing), resumed: make(chan attempt), waits: make(chan waiting), children: make(chan os.Signal, 1),
		verdicts: make(chan string), progress: progress{dueAt: never}, noticed: make(chan *notices)}
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
	r.startCheck()
	r.loop()
	if r.candidacy != nil {
		r.candidacy.Close()
	}
	cancel()
	r.purge()
	return r.status, r.fault
}

// loop handles one event after the other, and calls follow after each.
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
		case s := <-r.attempts:
			r.take(s)
		case h := <-r.heard:
			if h.from == r.candidacy && !r.over {
				r.hear(h)
			}
		case s := <-r.resumed:
			if s.candidacy == r.candidacy && !r.over {
				r.resume(s.err)
			}
		case w := <-r.waits:
			r.explain(w)
		case report, ok := <-r.guard.Reports:
			r.learn(report, ok)
		case <-r.children:
			guard.Reap(func(int, unix.WaitStatus) {}) // the end of the guard is reported
		case unhealthy := <-r.verdicts:
			r.judged(unhealthy)
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

// follow does what the present state asks for. It returns true when Run is to end.
func (r *runner) follow(now int64) bool {
	r.watch(now)
	if r.state == running && (!r.leading || r.ending) {
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
		r.giveReceipt()
	}
	switch {
	case r.ending:
		return true
	case !r.ready: // without a guard the command could not be started or ended
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

// overdue ends a command that its guard has not ended in time. But perhaps this process is
// the one that did not run: then a report of the guard waits to be read.
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

// stoodStill returns how long after its alarm this process runs, and whether that is so long
// that the delay is this process's and not its guard's.
func (r *runner) stoodStill(now int64) (still time.Duration, own bool) {
	still = time.Duration(now - r.woken)
	return still, still > guard.Margin(r.lease)/2
}

// wakeAt is when the loop has something to do even if nothing happens.
func (r *runner) wakeAt(now int64) int64 {
	wake := never
	switch r.state {
	case stopping:
		return min(wake, r.lateAt())
	case starting, running:
		return min(wake, r.lateAt(), r.progress.dueAt)
	}
	if r.notBefore > now {
		wake = r.notBefore
	}
	if r.leading {
		wake = min(wake, r.until)
	}
	return wake
}

// lateAt is when the guard counts as too late to end the command: half of the time that it
// had left for that has passed.
func (r *runner) lateAt() int64 {
	due := guard.Plan(r.until, r.lease).KillAt
	if r.state == stopping {
		due = max(min(due, r.killAt), r.stopped)
	}
	return due + min(int64(guard.Margin(r.lease)/2), max(0, r.until-due)/2)
}

// mayStart reports whether the command may be started: not in the pause after it ended by
// itself, and not so late in the lease that it would have to be ended at once.
func (r *runner) mayStart(now int64) bool {
	return r.leading && !r.resuming && now >= r.notBefore && now < guard.Plan(r.until, r.lease).TermAt
}

func (r *runner) start(now int64) {
	if r.announced != r.term {
		r.say("elected to lead %s, term %d: starting %s", r.Election, r.term, r.name())
	}
	r.state, r.began, r.announced = starting, now, r.term
	notify, err := r.expect(now)
	if err != nil {
		r.say("%v", err)
		r.state = idle
		r.ended(statusNotRunnable)
		return
	}
	o := guard.Order{Do: guard.Start, Path: r.path, Group: r.group, Nice: r.nice, Env: []string{"DOYEN_TERM=" + strconv.FormatUint(r.term, 10)},
		Term: r.term, Campaign: r.candidacy.ID(), Schedule: guard.Plan(r.until, r.lease), Grace: r.Grace}
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

// stop has the command ended, in time for its lease.
func (r *runner) stop(now int64) {
	r.state, r.stopped = stopping, now
	r.killAt = min(now+int64(r.Grace), guard.Plan(r.until, r.lease).KillAt)
	r.guard.Tell(guard.Order{Do: guard.Stop, Signal: int(syscall.SIGTERM), KillAt: r.killAt})
}

// goesOn reports whether the candidacy continues after sending a receipt returned err: only
// if the agent accepted the receipt before the lease's end. A later receipt could end the
// next leadership, whose line is not read yet.
func (r *runner) goesOn(err error, now int64) bool {
	return err == nil && r.revoked && now < r.until
}

// giveReceipt notifies the agent that the command has ended.
func (r *runner) giveReceipt() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), receiptTimeout)
	defer cancel()
	err := r.candidacy.StoppedBecause(ctx, r.why)
	r.over = r.over || !r.goesOn(err, alarm.Now())
	r.leading, r.owed, r.revoked, r.why = false, false, false, ""
}

// loseGuard ends a guard that does not do its part, and all its descendants.
func (r *runner) loseGuard() {
	r.purge()
	r.learn(guard.Report{}, false)
}

// purge ends the guard, and kills and reaps until no descendant is left. A run of the check is killed
// too, and repeated.
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

// hearing is a line of the agent, or the end of the lines.
type hearing struct {
	from  *client.Candidacy
	event api.CampaignEvent
	err   error
}

func (r *runner) listen(from *client.Candidacy) {
	for {
		event, err := from.Next(r.ctx)
		select {
		case r.heard <- hearing{from, event, err}:
		case <-r.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}
