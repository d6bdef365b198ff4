package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/doyen-election/doyen/agent/actors/proof"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// act has the leader do what the drill is for, or kills it.
func (d *drillRun) act() error {
	first := d.report.Elections[0]
	did := map[string]string{api.DrillTransfer: "was asked to hand over", api.DrillStop: "was asked to stop", api.DrillKill: "was killed"}[d.report.How]
	at := time.Now().UTC()
	d.began = alarm.Now()
	if d.report.How == api.DrillKill {
		if err := d.kill(first.Term); err != nil {
			return err
		}
	} else {
		ctx, done := d.change()
		defer done()
		outcome, err := d.client.Drill(ctx, d.report.Election, api.DrillRequest{How: d.report.How, To: d.to, Term: first.Term})
		if err != nil {
			return fmt.Errorf("drill: %w", err)
		}
		if d.report.How == api.DrillStop {
			d.began, at = alarm.Now()+int64(api.DrillDelay), time.Now().UTC().Add(api.DrillDelay)
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

// kill ends the agent of this host as kill -9 does, if it still leads in that term.
func (d *drillRun) kill(term uint64) error {
	e, err := d.led()
	if err != nil {
		return err
	}
	if !e.IsLeader || e.Term != term {
		return noDrill(fmt.Sprintf("this agent no longer leads %s in term %d as it was planned", e.Election, term), "try again")
	}
	conn, err := net.Dial("unix", d.client.Socket())
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	defer conn.Close()
	if pid := int(proof.Identify(conn.(*net.UnixConn), alarm.Now(), false).PID); pid != d.own.PID { // by number, another process would die
		return noDrill(fmt.Sprintf("the agent reports that it is process %d; here it is process %d", d.own.PID, pid), "run it where the agent's processes can be seen, such as in its container")
	}
	if err := syscall.Kill(d.own.PID, syscall.SIGKILL); err != nil {
		return noDrill(fmt.Sprintf("kill process %d: %v", d.own.PID, err), "run it as root or as the agent's user")
	}
	return nil
}

// await waits until the outcome is known or time is up, and shows the changes meanwhile.
func (d *drillRun) await() error {
	limit := time.NewTimer(d.limit)
	defer limit.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx, settled := d.ctx, false; !settled; {
		over := false
		select {
		case <-tick.C:
		case <-limit.C:
			over = true
		case <-ctx.Done():
			over, d.report.Interrupted = true, true
			ctx = context.WithoutCancel(ctx)
		}
		seen, known := d.look(ctx)
		settled = known || over
		if err := d.show(seen); err != nil {
			return err
		}
	}
	return nil
}

// show writes a line for each change of the drill's election that this host's agent saw.
func (d *drillRun) show(seen []api.DrillView) error {
	for _, v := range seen {
		for _, c := range v.Changes {
			if d.json || v.ID != d.own.ID || c.BoottimeNS <= d.shown || c.Election != d.report.Election || c.Type == api.ChangeCommand {
				continue
			}
			d.shown = c.BoottimeNS
			line := api.Change{Time: c.Time, Type: c.Type, Election: c.Election, Leader: c.Leader, IsLeader: c.Leader != nil && c.Leader.ID == d.own.ID, Term: c.Term, Reason: c.Reason}
			if err := d.write([]byte(changeLine(line, d.palette()))); err != nil {
				return err
			}
		}
	}
	return nil
}

// look asks the agents what they saw, and reports whether the outcome is known.
func (d *drillRun) look(ctx context.Context) (seen []api.DrillView, known bool) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	seen, err := d.client.Drills(ctx, d.report.Election)
	if err != nil {
		return nil, false // the agent of this host may be the one that is down
	}
	elections, err := d.client.Elections(ctx)
	if err != nil {
		return nil, false
	}
	r := &d.report
	r.Agents = r.Agents[:0]
	for _, v := range seen {
		at := slices.IndexFunc(d.before, func(b api.DrillView) bool { return b.ID == v.ID })
		a := drilledAgent{Name: v.Name, Reached: v.Reached, Restarted: v.Reached && at >= 0 && v.BootID != d.before[at].BootID, Was: d.saw(v, r.Elections[0])}
		r.Agents = append(r.Agents, a)
		r.back = r.back || v.ID == d.leader.ID && (a.Restarted || v.Reached && r.How == api.DrillTransfer)
	}
	if at := slices.IndexFunc(seen, func(v api.DrillView) bool { return v.ID == d.own.ID }); at > 0 {
		seen[0], seen[at] = seen[at], seen[0] // this host's agent is the first witness
	}
	known = r.back || r.How == api.DrillTransfer
	for i := range r.Elections {
		r.Elections[i].Was = d.measured(r.Elections[i], seen, elections)
		known = known && r.Elections[i].Was != nil
	}
	return seen, known
}

// saw returns what an agent's changes since the drill show of an election; nil: nobody leads it in
// a higher term.
func (d *drillRun) saw(v api.DrillView, e drilledElection) *drillWas {
	for _, c := range v.Changes {
		if c.BoottimeNS <= d.newest[v.ID] || c.Election != e.Election || c.Type != api.ChangeLeader || c.Leader == nil || c.Term <= e.Term {
			continue
		}
		was := &drillWas{Leader: c.Leader.Name, Term: c.Term, TookMS: max(c.GapMS, c.VacantMS), SeenBy: v.Name}
		if v.ID == d.own.ID {
			was.TookMS = max(0, (c.BoottimeNS-d.began)/1e6)
		}
		was.without(c)
		return was
	}
	return nil
}

// measured returns what happened to an election, as the agent of this host saw it, or another one
// if that was the one that was down; nil: it is not known yet.
func (d *drillRun) measured(e drilledElection, seen []api.DrillView, elections []api.Election) *drillWas {
	var witness *api.DrillView
	for i, v := range seen {
		if !v.Reached || v.ID == d.leader.ID && d.report.How != api.DrillTransfer {
			continue
		}
		if was := d.saw(v, e); was != nil {
			return was
		}
		if witness == nil {
			witness = &seen[i]
		}
	}
	i := slices.IndexFunc(elections, func(x api.Election) bool { return x.Election == e.Election })
	if !d.report.back || d.report.How != api.DrillKill || witness == nil || i < 0 || elections[i].Leader == nil || elections[i].Leader.ID != d.leader.ID || elections[i].Term != e.Term {
		return nil
	}
	was := &drillWas{Leader: e.Leader, Term: e.Term, SeenBy: witness.Name} // it leads on
	for _, c := range witness.Changes {
		if c.BoottimeNS > d.newest[witness.ID] && c.Election == e.Election && c.Type == api.ChangeLeader && c.Term == e.Term && c.VacantMS > 0 {
			was.TookMS = c.VacantMS
			was.without(c)
		}
	}
	return was
}

// answer writes the report, and returns the outcome as an exit code.
func (d *drillRun) answer(dry bool) error {
	if d.json {
		encoded, err := json.Marshal(d.report)
		if err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		if err := d.printRaw(encoded); err != nil {
			return err
		}
	} else if !dry {
		if err := d.print("%s", d.report.page()); err != nil {
			return err
		}
	}
	if dry || d.report.AsPlanned {
		return nil
	}
	return silentExit{exitFailed}
}

// terminal reports whether a person can answer there.
func terminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// agreed reads an answer, and reports whether it is yes.
func agreed(ctx context.Context, in io.Reader) bool {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // at its end the answer is no
		line <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case text := <-line:
		return text == "y" || text == "yes"
	case <-ctx.Done():
		return false
	}
}

// window is a time of each day, in minutes since midnight. It may go over midnight.
type window struct {
	from, to int
	text     string
}

func parseWindow(text string) (window, error) {
	if text == "" {
		return window{}, nil
	}
	minutes := func(s string) (int, bool) {
		t, err := time.Parse("15:04", s)
		return t.Hour()*60 + t.Minute(), err == nil
	}
	from, to, _ := strings.Cut(text, "-")
	w := window{text: text}
	var ok, valid bool
	w.from, ok = minutes(strings.TrimSpace(from))
	w.to, valid = minutes(strings.TrimSpace(to))
	if !ok || !valid || w.from == w.to {
		return w, usage("write --window 02:00-04:00; it may go over midnight", "drill: --window %q is not a time of day", text)
	}
	return w, nil
}

// check returns an error outside the window.
func (w window) check(now time.Time) error {
	at := now.Hour()*60 + now.Minute()
	inside := at >= w.from && at < w.to
	if w.from > w.to {
		inside = at >= w.from || at < w.to
	}
	if w.text == "" || inside {
		return nil
	}
	return noDrill(fmt.Sprintf("it is %s, outside the window %s", now.Format("15:04"), w.text), "the window is in the local time of this host; nothing was done")
}
