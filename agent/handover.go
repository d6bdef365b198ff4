package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/doyen-election/doyen/agent/loop"
	"github.com/doyen-election/doyen/internal/base/footprint"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

const (
	leaveLimit = 300 * time.Millisecond // how long a stop may take to leave gossip
	flushLimit = 200 * time.Millisecond // how long a stop may take to send what is queued
	closeLimit = 500 * time.Millisecond // how long a stop may take to finish answers under way
)

// run starts the loop, reports that the agent is ready, and stops the agent on request.
func (a *agent) run(ctx context.Context, stderr io.Writer) error {
	loopCtx, stop := context.WithCancel(context.Background())
	restarts, goesOn := false, false
	defer func() {
		if !goesOn { // a loop that stops revokes every leadership, so it must not stop if the next life goes on leading
			stop()
		}
	}()
	if err := a.around.Life.Confine(); err != nil {
		a.logger.Info("the kernel does not keep this process from starting others, which it never does", "err", err)
	}
	var running sync.WaitGroup
	running.Go(func() { a.writer.Run(loopCtx) })
	running.Go(func() { a.loop.Run(loopCtx) })
	running.Go(func() { a.loop.History.Run(loopCtx) })
	running.Go(func() { a.watchdog(loopCtx) })
	running.Go(func() { a.tellStatus(loopCtx) })
	running.Go(func() { a.obeyHangups(loopCtx) })

	fmt.Fprintf(stderr, "doyen: agent %s ready: socket %s, peers %s, gossip %s\n",
		a.cfg.Name, a.cfg.Socket, a.transport.Addr(), a.membership.Addr())
	a.notify(daemon.SdNotifyReady + "\nSTATUS=ready")
	a.around.Life.Runs(a.cfg.Heartbeat, a.cfg.Lease)
	footprint.Limit()
	running.Go(func() { footprint.WhenCalm(loopCtx, a.trim) })
	select {
	case <-ctx.Done():
	case <-a.leaving:
	case <-a.restarts:
		if a.handFirst == "" && !a.record.Kept() {
			a.handFirst = noRecordNow
		}
		restarts, goesOn = true, a.handFirst == ""
	}
	switch {
	case goesOn:
		a.logger.Info("restarting")
		a.flushHistory()
		return ErrRestart
	case restarts:
		a.logger.Info("restarting; what this agent leads is handed over first", "why", a.handFirst)
	default:
		a.around.Life.Stops()
		a.notify(daemon.SdNotifyStopping + "\nSTATUS=handing over")
	}
	a.handOver()
	stop()
	running.Wait()
	err := a.close(true)
	a.logger.Info("stopped")
	if restarts {
		return errors.Join(ErrRestart, err)
	}
	return err
}

// trim returns to the system the memory that only the start needed.
func (a *agent) trim() {
	if err := footprint.Trim(); err != nil {
		a.logger.Debug("unused memory was not returned to the system", "err", err)
	}
}

// handOver makes the loop release all that it leads, and notifies the other agents that this one
// leaves. The loop keeps running meanwhile, since the successor may need this agent's vote.
func (a *agent) handOver() {
	a.loop.Release()
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	if err := a.membership.Leave(ctx); err != nil {
		a.logger.Info("goodbye may not have reached the other agents: they notice by its silence that this one is gone", "err", err)
	}
}

// close closes the parts that were started, and unlocks the data directory last. A part that does not close in
// time does no harm, and is logged. If ran is true, the agent has run and its lineage ends. Otherwise its start
// has failed, and the next start may still go on from the record and the lease pages.
func (a *agent) close(ran bool) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	logged := func(what string, err error) {
		if err != nil {
			a.logger.Info(what, "err", err)
		}
	}
	if a.server != nil {
		logged("some answers were not sent completely", a.server.Close(ctx))
	}
	flush, done := context.WithTimeout(context.Background(), flushLimit)
	defer done()
	if a.transport != nil {
		logged("some messages were not sent", a.transport.Close(flush))
	}
	if ran || a.past == nil {
		logged("a lease page was not removed; it holds no lease", a.pages.Close())
	}
	if ran {
		logged("the record was not removed; no agent can go on with it", a.record.Destroy())
		a.flushHistory()
	}
	if a.membership != nil {
		err = a.membership.Close()
	}
	err = errors.Join(err, a.record.Close())
	if a.store != nil {
		err = errors.Join(err, a.store.Close())
	}
	return wrap.Error(err, "stop agent")
}

// commands is what callers on the socket can make the agent do.
type commands struct {
	*loop.Loop
	agent *agent
}

// Leave starts the stop, if no earlier call has, and waits for the hand-over.
func (c commands) Leave(ctx context.Context) error {
	c.agent.leaveOnce.Do(func() { close(c.agent.leaving) })
	select {
	case <-c.Loop.Released:
	case <-c.Loop.Done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// flushHistory writes the newest changes, but does not wait for a slow disk.
func (a *agent) flushHistory() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		if err := a.loop.History.Flush(); err != nil {
			a.logger.Info("the newest changes of the history were not written", "err", err)
		}
	}()
	select {
	case <-written:
	case <-time.After(flushLimit):
	}
}
