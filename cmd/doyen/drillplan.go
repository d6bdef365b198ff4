package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/alarm"
	"github.com/doyen-election/doyen/internal/plan"
)

// foresee asks the agents and plans the drill. The error is why it is refused.
func (d *drillRun) foresee() error {
	if err := d.ask(); err != nil {
		return err
	}
	if err := d.rest(); err != nil {
		return err
	}
	snapshot, err := d.snapshot()
	if err != nil {
		return err
	}
	ctx, cancel := d.question()
	defer cancel()
	elections, err := d.client.Elections(ctx)
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	if err := d.refused(elections); err != nil {
		return err
	}
	d.takeEffect()
	preempt := snapshot.Preempt
	snapshot.Preempt = false // who leads at once, not who takes the lead back later
	if err := d.expect(snapshot); err != nil {
		return err
	}
	if preempt {
		d.returning(snapshot)
	}
	return nil
}

// ask asks every agent what the drill rests on.
func (d *drillRun) ask() error {
	ctx, cancel := d.question()
	defer cancel()
	own, err := d.client.Agent(ctx)
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	d.own, d.quorum, d.lease = own.Name, own.Quorum, milliseconds(own.LeaseMS)
	d.before, err = d.client.Drills(ctx, d.report.Election)
	if refused, ok := errors.AsType[*client.APIError](err); ok && refused.Status == http.StatusNotFound {
		return noDrill(fmt.Sprintf("this agent has version %s, which does not know drills", printable(own.Version)), "upgrade it, or run the drill on another host")
	}
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	return nil
}

// rest waits until the newest change of the leader was two leases ago. For a lease the agent that
// handed over then is not a candidate, and the plan would not hold.
func (d *drillRun) rest() error {
	wait := time.Duration(0)
	for _, v := range d.before {
		for _, c := range v.Changes {
			if v.Name == d.own && c.Type == api.ChangeLeader && c.Election == d.report.Election {
				wait = 2*d.lease - time.Duration(alarm.Now()-c.BoottimeNS)
			}
		}
	}
	if wait <= 0 || wait > 2*d.lease {
		return nil
	}
	fmt.Fprintf(d.stderr, "doyen: drill: the leader has just changed: waiting %s until the agents are at rest\n", wait.Round(100*time.Millisecond))
	select {
	case <-time.After(wait):
		return d.ask()
	case <-d.Context.Context.Done():
		return &failure{code: exitFailed, what: "drill", err: d.Context.Context.Err(), hint: "nothing was done"}
	}
}

// returning notes that the agent takes the lead of default back by its priority. Those of other
// elections are not known.
func (d *drillRun) returning(s plan.Snapshot) {
	priority := map[string]int{}
	for _, a := range s.Agents {
		priority[a.Name] = a.Priority
	}
	a := d.report.Agent
	for _, e := range d.report.Elections {
		if next := e.Planned.Leaders[0]; e.Election == string(election.Default) && priority[a] > priority[next] {
			d.report.Notes = append(d.report.Notes, fmt.Sprintf("%s has the higher priority: it takes the lead of %s back after %s", a, e.Election, s.PreemptDelay))
		}
	}
}

func noDrill(why, hint string) error {
	return &failure{code: exitFailed, what: "drill refused", err: errors.New(why), hint: hint}
}

// about reports whether the drill is of this election.
func (d *drillRun) about(e api.Election) bool { return e.Election == d.report.Election }

// refused finds the leader, and reports why no drill may be run.
func (d *drillRun) refused(elections []api.Election) error {
	if !slices.ContainsFunc(elections, d.about) {
		return noDrill("no agent is a candidate in "+d.report.Election, "`doyen elections` lists the elections")
	}
	for _, v := range d.before {
		if v.Reached && v.Refused != "" {
			return noDrill("agent "+v.Name+": "+v.Refused, "`doyen status --all` and `doyen history` show more; nothing was done")
		}
	}
	e := elections[slices.IndexFunc(elections, d.about)]
	if e.Leader == nil {
		why, hint := leaderless(e)
		return noDrill("nobody leads "+e.Election+" now: "+why, hint)
	}
	d.report.Agent = e.Leader.Name
	at := slices.IndexFunc(d.before, func(v api.DrillView) bool { return v.ID == e.Leader.ID })
	if at < 0 || !d.before[at].Reached {
		return noDrill("the leader "+e.Leader.Name+" can't be asked: this agent is not connected to it, its version does not know drills, or this agent is not a voter", "`doyen members` shows versions and connections; try on the host of a voter")
	}
	d.leader = d.before[at]
	if d.report.How == api.DrillKill && e.Leader.Name == d.own && !d.leader.Keeper {
		return noDrill("the agent of this host leads, and has no keeper to start it again: nothing could be seen from here", "run it on another host")
	}
	if d.report.How == api.DrillTransfer && d.to == "" {
		others := slices.DeleteFunc(slices.Clone(e.Candidates), func(name string) bool { return name == e.Leader.Name })
		if len(others) == 0 {
			return noDrill("no other agent can lead "+e.Election+" now", "`doyen elections` lists the candidates")
		}
		d.to = others[0]
	}
	return nil
}

// takeEffect says what the drill does to the agent, and who starts it again.
func (d *drillRun) takeEffect() {
	a, v := d.report.Agent, d.leader
	switch d.report.How {
	case api.DrillTransfer:
		d.report.Effect = fmt.Sprintf("%s hands over to %s, and goes on running", a, d.to)
	case api.DrillStop:
		d.returns = true
		d.report.Effect = fmt.Sprintf("the agent %s hands over, stops, and starts itself again", a)
	default:
		d.returns = v.Keeper
		what := "nothing starts it again: it STAYS DOWN until somebody does"
		switch {
		case d.goesOn():
			what = "its keeper starts the next process at once, which leads on"
		case v.Keeper:
			what = "its keeper starts it again at once, but it keeps no record to lead on from"
		case v.Service:
			what = "it has no keeper; its service manager may start it again, else it STAYS DOWN until somebody does"
		}
		d.report.Effect = fmt.Sprintf("the agent %s is killed; %s", a, what)
	}
}

// goesOn reports whether the agent leads on after a kill.
func (d *drillRun) goesOn() bool { return d.leader.Keeper && d.leader.Record }

// expect plans what happens to each election that is concerned.
func (d *drillRun) expect(snapshot plan.Snapshot) error {
	a := d.report.Agent
	faults := plan.Faults{Down: []string{a}}
	switch d.report.How {
	case api.DrillTransfer:
		faults = plan.Faults{Election: election.Name(d.report.Election), To: d.to}
	case api.DrillStop:
		faults = plan.Faults{Stopped: []string{a}}
	}
	forecast, err := plan.Ask(snapshot, faults, 1)
	if err != nil {
		return noDrill("it can't be planned: "+err.Error(), "`doyen members` and `doyen elections` show the agents and candidates")
	}
	for _, f := range forecast.Elections {
		concerned := f.Election == d.report.Election
		if d.report.How != api.DrillTransfer {
			concerned = f.Leader == a
		}
		if !concerned {
			continue
		}
		p, ok := foreseen(f, d.lease)
		if !ok {
			return noDrill("by the plan nobody might lead "+f.Election+" afterwards", "`doyen plan --down "+a+"` shows it, `doyen elections` the candidates")
		}
		if d.report.How == api.DrillKill {
			d.restarts(&p)
		}
		if p.Stays {
			p.Term = f.Term
		}
		d.report.Elections = append(d.report.Elections, drilledElection{Election: f.Election, Leader: f.Leader, Term: f.Term, Planned: p})
	}
	slices.SortStableFunc(d.report.Elections, func(x, y drilledElection) int { // the one that was asked for is first
		if x.Election == d.report.Election {
			return -1
		}
		if y.Election == d.report.Election {
			return 1
		}
		return 0
	})
	if len(d.report.Elections) == 0 || d.report.Elections[0].Election != d.report.Election {
		return noDrill("who leads "+d.report.Election+" has just changed", "try again")
	}
	return nil
}

// restarts has the plan of a kill take the agent's next process into account, which leads on if
// it starts within the lease.
func (d *drillRun) restarts(p *drillPlanned) {
	switch {
	case d.goesOn():
		p.Otherwise, p.Leaders, p.Stays = p.Leaders, []string{d.report.Agent}, true
		p.EarliestMS, p.LatestMS, p.AllowedMS = 0, 0, (d.lease / 2).Milliseconds()
	case d.leader.Keeper || d.leader.Service:
		p.Leaders = append(slices.Clone(p.Leaders), d.report.Agent)
	}
}
