package main

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/agent/actors/proof"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/internal/plan"
)

// lookEvery is how often the agents are asked about the outcome of a drill.
const lookEvery = 200 * time.Millisecond

func drillFlags() []cli.Flag {
	return []cli.Flag{
		truthFlag("transfer", "the leader hands over"),
		truthFlag("stop", "the leader's agent stops and starts again"),
		truthFlag("kill", "the leader's agent is killed"),
		&cli.StringFlag{Name: "to", Usage: "with --transfer: `NAME` of the agent that should lead; else the best-ranked one"},
		&cli.StringFlag{Name: "window", Usage: "refuse outside these times of day, `02:00-04:00`, local time of this host"},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask", DisableDefaultText: true},
		truthFlag("dry-run", "show the plan, and do nothing"),
		durationFlag("timeout", "wait so `LONG` for the outcome", 30*time.Second, time.Millisecond, time.Hour),
	}
}

// drillRun is one drill.
type drillRun struct {
	*invocation
	client *client.Client
	to     string
	state  state // before the drill
	before []api.DrillView
	leader api.DrillView // the agent that leads before the drill
	report drillReport
	back   bool // the former leader runs again, or never stopped
}

func drill(i *invocation) error {
	d, err := newDrill(i)
	if err != nil {
		return err
	}
	defer d.client.Close()
	if err := d.foresee(); err != nil {
		return err
	}
	page, dry := d.report.planPage(d.state.agent.Quorum), i.Bool("dry-run")
	ask := !i.Bool("yes") && !dry && terminal(i.stdin)
	switch {
	case dry:
		return i.show(d.report, page)
	case !i.json:
		err = i.print("%s", page)
	case ask:
		fmt.Fprint(i.stderr, page)
	}
	if err != nil {
		return err
	}
	if ask {
		fmt.Fprintf(i.stderr, "\n%s %s: go on? [y/N] ", d.report.How, printable(d.report.Agent))
		if !agreed(i.Context.Context, i.stdin) {
			return &failure{code: exitFailed, what: "drill: nothing was done: you did not answer y"}
		}
	}
	if err := within(i.String("window"), time.Now()); err != nil {
		return err
	}
	if err := d.act(); err != nil {
		return err
	}
	d.await()
	d.judge()
	if err := i.show(d.report, d.report.page()); err != nil || d.report.AsPlanned {
		return err
	}
	return silentExit{exitFailed}
}

func newDrill(i *invocation) (*drillRun, error) {
	name := i.election()
	chosen := slices.DeleteFunc([]string{api.DrillTransfer, api.DrillStop, api.DrillKill}, func(how string) bool { return !i.Bool(how) })
	how := append(chosen, api.DrillTransfer)[0]
	d := &drillRun{invocation: i, to: i.String("to"), report: drillReport{Election: name, How: how, Why: []string{}, Notes: []string{}, Elections: []drilledElection{}, Agents: []drilledAgent{}}}
	switch {
	case len(chosen) > 1:
		return nil, usage("write one of --transfer, --stop and --kill", "drill: more than one of --transfer, --stop and --kill")
	case i.IsSet("to") && how != api.DrillTransfer:
		return nil, usage("--to goes with --transfer: after a stop or a kill the agents elect", "drill: --to with --%s", how)
	case i.IsSet("to") && !election.ValidName(d.to):
		return nil, usage(nameRule, "drill: --to: %q is not a valid agent name", d.to)
	}
	d.client = i.client()
	return d, within(i.String("window"), time.Now())
}

func noDrill(why, hint string) error {
	return &failure{code: exitFailed, what: "drill refused: " + why, hint: hint}
}

// foresee asks the agents and plans the drill. The error is the reason why no drill may run.
func (d *drillRun) foresee() error {
	if err := d.ask(); err != nil {
		return err
	}
	if wait := d.unrest(); wait > 0 {
		fmt.Fprintf(d.stderr, "doyen: drill: the leader has just changed: waiting %s until the agents are at rest\n", wait.Round(100*time.Millisecond))
		select {
		case <-time.After(wait):
		case <-d.Context.Done():
			return &failure{code: exitFailed, what: "drill: " + d.Context.Err().Error(), hint: "nothing was done"}
		}
		if err := d.ask(); err != nil {
			return err
		}
	}
	if err := d.choose(); err != nil {
		return err
	}
	return d.expect()
}

// ask asks all agents for everything that the drill depends on.
func (d *drillRun) ask() (err error) {
	if d.state, err = d.askState(); err == nil {
		ctx := d.question()
		d.before, err = d.client.Drills(ctx, d.report.Election)
	}
	return wrap.Error(err, "drill")
}

// unrest returns how long to wait until two leases have passed since the last change of leader. An agent that
// hands over is not a candidate for one lease, so a plan made in that time would be wrong.
func (d *drillRun) unrest() time.Duration {
	own := viewOf(d.before, d.state.agent.ID)
	for _, c := range slices.Backward(own.Changes) {
		if c.Type == api.ChangeLeader && c.Election == d.report.Election {
			if since := time.Duration(alarm.Now() - c.BoottimeNS); since >= 0 { // a negative time is from another boot of this host
				return 2*milliseconds(d.state.agent.LeaseMS) - since
			}
		}
	}
	return 0
}

// viewOf returns the view of the agent with that ID, or an empty one, which counts as not reached.
func viewOf(views []api.DrillView, id string) api.DrillView {
	v, _ := each.First(views, func(v api.DrillView) bool { return v.ID == id })
	return v
}

// choose finds the leader, and describes what the drill does to it. The error is the reason why no drill may
// run.
func (d *drillRun) choose() error {
	e, known := each.First(d.state.elections, func(e api.Election) bool { return e.Election == d.report.Election })
	if !known {
		return noDrill("no agent is a candidate in "+d.report.Election, "`doyen elections` lists the elections")
	}
	if e.Leader == nil {
		why, hint := leaderless(e)
		return noDrill("nobody leads "+e.Election+" now: "+why, hint)
	}
	for _, v := range d.before {
		if v.Reached && v.Refused != "" {
			return noDrill("agent "+v.Name+": "+v.Refused, "`doyen status --all` and `doyen history` show more; nothing was done")
		}
	}
	a := e.Leader.Name
	d.leader, d.report.Agent = viewOf(d.before, e.Leader.ID), a
	if !d.leader.Reached {
		return noDrill("the leader "+a+" can't be asked: this agent is not connected to it, its version does not know drills, or this agent is not a voter", "`doyen members` shows versions and connections; try on the host of a voter")
	}
	switch {
	case d.report.How == api.DrillStop:
		d.report.Effect = fmt.Sprintf("the agent %s hands over, stops, and starts itself again", a)
	case d.report.How == api.DrillTransfer:
		others := slices.DeleteFunc(slices.Clone(e.Candidates), func(name string) bool { return name == a })
		if len(others) == 0 {
			return noDrill("no other agent can lead "+e.Election+" now", "`doyen elections` lists the candidates")
		}
		d.to = cmp.Or(d.to, others[0])
		d.report.Effect = fmt.Sprintf("%s hands over to %s, and goes on running", a, d.to)
	case d.leader.ID != d.state.agent.ID:
		return noDrill("an agent is killed on its own host, and "+a+" leads "+e.Election, "run `doyen drill --kill` on the host of "+a+", or `doyen drill --stop` here")
	case !d.leader.Keeper:
		return noDrill("the agent of this host has no keeper to start it again: nothing could be seen from here", "`doyen drill --stop` has it start itself again")
	case d.leader.Record:
		d.report.Effect = "the agent " + a + " is killed; its keeper starts the next process at once, which leads on"
	default:
		d.report.Effect = "the agent " + a + " is killed; its keeper starts it again at once, but it keeps no record to lead on from"
	}
	return nil
}

// expect plans the outcome of each election that the drill affects. The requested one comes first.
func (d *drillRun) expect() error {
	r, snapshot := &d.report, d.state.snapshot()
	faults := plan.Faults{Down: []string{r.Agent}}
	switch r.How {
	case api.DrillTransfer:
		faults = plan.Faults{Election: election.Name(r.Election), To: d.to}
	case api.DrillStop:
		faults = plan.Faults{Stopped: []string{r.Agent}}
	}
	snapshot.Preempt = false // the plan is about the next leader, not about a later one that takes the lead back
	forecast, err := plan.Ask(snapshot, faults, 1)
	if err != nil {
		return noDrill("it can't be planned: "+err.Error(), "`doyen members` and `doyen elections` show the agents and candidates")
	}
	for _, f := range forecast.Elections {
		asked := f.Election == r.Election
		if !asked && (r.How == api.DrillTransfer || f.Leader != r.Agent) {
			continue
		}
		if asked && f.Leader != r.Agent {
			return noDrill("who leads "+r.Election+" has just changed", "try again")
		}
		if len(f.Then) == 0 || !f.Then[0].Certain {
			return noDrill("by the plan nobody might lead "+f.Election+" afterwards", "`doyen plan --down "+r.Agent+"` shows it, `doyen elections` the candidates")
		}
		r.Elections = append(r.Elections, d.foreseen(f))
		if asked {
			slices.Reverse(r.Elections)
		}
	}
	return nil
}

// act makes the leader hand over or stop, or kills it.
func (d *drillRun) act() error {
	term, did := d.report.Elections[0].Term, "was asked to hand over"
	at := time.Now().UTC()
	if d.report.How == api.DrillKill {
		did = "was killed"
		if err := d.kill(term); err != nil {
			return err
		}
	} else {
		outcome, err := d.client.Drill(d.upTo(changeTimeout), d.report.Election, api.DrillRequest{How: d.report.How, To: d.to, Term: term})
		if err != nil {
			return fmt.Errorf("drill: %w", err)
		}
		if d.report.How == api.DrillStop {
			did, at = "was asked to stop", time.Now().UTC().Add(api.DrillDelay)
		} else if !outcome.Done {
			d.report.Notes = append(d.report.Notes, outcome.Message)
		}
	}
	d.report.Done, d.report.At = true, &at
	if d.json {
		return nil
	}
	return d.print("\n%s  %s  %s\n", at.Local().Format(timeOfDay), printable(d.report.Agent), did)
}

// kill ends this host's agent as kill -9 does, if it still leads in that term.
func (d *drillRun) kill(term uint64) error {
	ctx := d.question()
	leads, e, err := d.client.IsLeader(ctx, d.report.Election)
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	if !leads || e.Term != term {
		return noDrill(fmt.Sprintf("this agent no longer leads %s in term %d as it was planned", e.Election, term), "try again")
	}
	conn, err := net.Dial("unix", d.client.Socket())
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	defer conn.Close()
	reported := d.state.agent.PID
	if pid := int(proof.Identify(conn.(*net.UnixConn), alarm.Now(), false).PID); pid != reported { // in a container, the agent's reported number may be that of another process here
		return noDrill(fmt.Sprintf("the agent reports that it is process %d; here it is process %d", reported, pid), "run it where the agent's processes can be seen, such as in its container")
	}
	if err := syscall.Kill(reported, syscall.SIGKILL); err != nil {
		return noDrill(fmt.Sprintf("kill process %d: %v", reported, err), "run it as root or as the agent's user")
	}
	return nil
}
