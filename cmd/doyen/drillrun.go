package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/alarm"
)

// act runs the drill, and waits for its outcome.
func (d *drillRun) act() error {
	watching, cancel := context.WithCancel(d.Context.Context)
	defer cancel()
	changes, err := d.follow(watching)
	if err != nil {
		return err
	}
	first := d.report.Elections[0]
	ctx, done := d.change()
	defer done()
	at := time.Now().UTC()
	d.began = alarm.Now()
	outcome, err := d.client.Drill(ctx, d.report.Election, api.DrillRequest{How: d.report.How, To: d.to, Term: first.Term})
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	if d.report.How != api.DrillTransfer {
		d.began, at = alarm.Now()+int64(api.DrillDelay), time.Now().UTC().Add(api.DrillDelay)
	} else if !outcome.Done {
		d.report.Notes = append(d.report.Notes, outcome.Message)
	}
	d.report.Done, d.report.At = true, &at
	if !d.json {
		did := map[string]string{api.DrillTransfer: "was asked to hand over", api.DrillStop: "was asked to stop", api.DrillKill: "was killed"}
		if err := d.print("\n%s  %s  %s\n", at.Local().Format(timeOfDay), printable(d.report.Agent), did[d.report.How]); err != nil {
			return err
		}
	}
	return d.await(changes)
}

// follow starts to follow the election. The first element has come when it returns.
func (d *drillRun) follow(ctx context.Context) (<-chan api.Change, error) {
	changes, first := make(chan api.Change, 64), make(chan error, 1)
	c := d.invocation.client()
	c.Raw = nil
	go func() {
		defer c.Close()
		started := false
		for change, err := range c.Follow(ctx, d.report.Election, d.limit) {
			if !started {
				started = true
				first <- err
				continue
			}
			if err != nil {
				return
			}
			select {
			case changes <- change:
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := <-first; err != nil {
		return nil, fmt.Errorf("watch %s: %w", d.report.Election, err)
	}
	return changes, nil
}

// await waits until the outcome is known, or time is up, and judges it.
func (d *drillRun) await(changes <-chan api.Change) error {
	limit := time.NewTimer(d.limit)
	defer limit.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	p := d.palette()
	ctx := d.Context.Context
	for settled := false; !settled; {
		select {
		case c := <-changes:
			if !d.json {
				if err := d.write([]byte(changeLine(c, p))); err != nil {
					return err
				}
			}
		case <-look.C:
			settled = d.look(ctx)
		case <-limit.C:
			settled = true
			d.look(ctx)
		case <-ctx.Done():
			settled = true
			d.report.Interrupted = true
			d.look(context.WithoutCancel(ctx))
		}
	}
	d.judge()
	return nil
}

// look asks the agents what they saw, and reports whether the outcome is known.
func (d *drillRun) look(ctx context.Context) (settled bool) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	after, err := d.client.Drills(ctx, d.report.Election)
	if err != nil {
		return false // the agent of this host may be the one that is down
	}
	elections, err := d.client.Elections(ctx)
	if err != nil {
		return false
	}
	seen := since(d.before, after)
	back := d.note(seen)
	settled = back || !d.returns
	for i := range d.report.Elections {
		e := &d.report.Elections[i]
		e.Was = d.measured(*e, seen, elections, back)
		settled = settled && e.Was != nil
	}
	return settled
}

// note keeps what each agent saw, and reports whether the drilled agent runs again, or still.
func (d *drillRun) note(seen []api.DrillView) (back bool) {
	first := d.report.Elections[0]
	d.report.Agents = d.report.Agents[:0]
	for _, v := range seen {
		boot := ""
		if i := slices.IndexFunc(d.before, func(b api.DrillView) bool { return b.ID == v.ID }); i >= 0 {
			boot = d.before[i].BootID
		}
		a := drilledAgent{Name: v.Name, Reached: v.Reached, Restarted: v.Reached && boot != "" && v.BootID != boot, Was: saw(v, first.Election, first.Term, d.ownClock(v))}
		d.report.Agents = append(d.report.Agents, a)
		back = back || v.ID == d.leader.ID && (a.Restarted || v.Reached && d.report.How == api.DrillTransfer)
	}
	return back
}

// ownClock is when the drill began, by the clock of the agent's host; 0: not known. What a process
// of the drilled agent saw after its start tells nothing.
func (d *drillRun) ownClock(v api.DrillView) int64 {
	if v.Name != d.own {
		return 0
	}
	return d.began
}

// measured returns what happened to an election, as the agent of this host saw it, or another one
// if that was the one that was down; nil: it is not known yet.
func (d *drillRun) measured(e drilledElection, seen []api.DrillView, elections []api.Election, back bool) *drillWas {
	down := ""
	if d.report.How != api.DrillTransfer {
		down = d.leader.ID
	}
	witnesses := slices.DeleteFunc(slices.Clone(seen), func(v api.DrillView) bool { return !v.Reached || v.ID == down })
	slices.SortStableFunc(witnesses, func(x, y api.DrillView) int {
		if x.Name == d.own {
			return -1
		}
		if y.Name == d.own {
			return 1
		}
		return 0
	})
	for _, v := range witnesses {
		if was := saw(v, e.Election, e.Term, d.ownClock(v)); was != nil {
			return was
		}
	}
	i := slices.IndexFunc(elections, func(x api.Election) bool { return x.Election == e.Election })
	if !back || len(witnesses) == 0 || i < 0 || elections[i].Leader == nil || elections[i].Leader.ID != d.leader.ID || elections[i].Term != e.Term || d.report.How != api.DrillKill {
		return nil
	}
	return kept(witnesses[0], e.Election, e.Leader, e.Term)
}

// judge compares with the plan, and says what is left to do.
func (d *drillRun) judge() {
	r := &d.report
	back := false
	for _, a := range r.Agents {
		back = back || a.Name == r.Agent && a.Reached && (a.Restarted || r.How == api.DrillTransfer)
	}
	if r.Interrupted {
		r.Why = append(r.Why, "interrupted: "+r.Effect+", and the outcome was not waited for")
	}
	for i := range r.Elections {
		e := &r.Elections[i]
		if e.judge(); e.Why != "" && !(r.Interrupted && e.Was == nil) {
			r.Why = append(r.Why, e.Why)
		}
	}
	start := "start the agent on the host " + r.Agent + ": systemctl start doyen"
	switch {
	case back:
	case d.returns:
		r.Why = append(r.Why, fmt.Sprintf("%s has not come back within %s; %s", r.Agent, d.limit, start))
	default:
		r.Notes = append(r.Notes, r.Agent+" is DOWN, as planned: "+start)
	}
	r.AsPlanned = len(r.Why) == 0
}
