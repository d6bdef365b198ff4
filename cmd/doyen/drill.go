package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
)

const (
	// drillLimit is for how long the outcome of a drill is waited for.
	drillLimit = 30 * time.Second
	// lookEvery is how often the agents are asked meanwhile.
	lookEvery = 200 * time.Millisecond
)

func drillCommand() command {
	return command{
		name: "drill", args: "[ELECTION] [--transfer|--stop|--kill]", max: 1,
		usage: "rehearse a failover, and compare what happens with what `doyen plan` foresees",
		description: "Shows the plan, asks on a terminal whether to go on, does it to the agent that leads, and reports who\n" +
			"led, and from when to when nobody did. It works on the host of any voter.\n\n" +
			"  --transfer  the leader hands the election over: the default\n" +
			"  --stop      the leader's agent hands over all that it leads, stops, and starts itself again\n" +
			"  --kill      the leader's agent dies as by kill -9. Its keeper starts the next process, which leads on.\n" +
			"              Without a keeper another host leads after the lease, and the agent stays down until\n" +
			"              its service manager or somebody starts it: the plan shows which\n\n" +
			"It is refused outside the window, without a quorum or if one more loss would cost it, while an election or\n" +
			"a change of the voters is under way, if nobody else could lead, and within a minute of another drill.\n\n" +
			"Exit codes: 0 as planned, 1 not as planned, refused or interrupted, 3 the agent can't be reached.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "transfer", Usage: "the leader hands over", DisableDefaultText: true},
			&cli.BoolFlag{Name: "stop", Usage: "the leader's agent stops and starts again", DisableDefaultText: true},
			&cli.BoolFlag{Name: "kill", Usage: "the leader's agent is killed", DisableDefaultText: true},
			&cli.StringFlag{Name: "to", Usage: "with --transfer: `NAME` of the agent that should lead; else the best-ranked one"},
			&cli.StringFlag{Name: "window", Usage: "refuse outside these times of day, `02:00-04:00`, local time of this host"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask", DisableDefaultText: true},
			&cli.BoolFlag{Name: "dry-run", Usage: "show the plan, and do nothing", DisableDefaultText: true},
			&cli.StringFlag{Name: "timeout", Usage: "wait so `LONG` for the outcome", DefaultText: drillLimit.String()},
		},
		run: drill,
	}
}

// drillRun is one drill.
type drillRun struct {
	*invocation
	client  *client.Client
	limit   time.Duration
	window  window
	to      string
	own     string // the agent of this host
	lease   time.Duration
	quorum  api.Quorum
	leader  api.DrillView // the agent that leads, before
	before  []api.DrillView
	report  drillReport
	began   int64 // CLOCK_BOOTTIME
	returns bool  // the agent is to be there again afterwards
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
	page := d.report.planPage(d.quorum)
	ask := !i.Bool("yes") && !i.Bool("dry-run") && terminal(i.App.Reader)
	switch {
	case !i.json:
		if err := i.print("%s", page); err != nil {
			return err
		}
	case ask:
		fmt.Fprint(i.stderr, page)
	}
	if i.Bool("dry-run") {
		return d.answer(true)
	}
	if ask {
		fmt.Fprintf(i.stderr, "\n%s %s: go on? [y/N] ", d.report.How, printable(d.report.Agent))
		if !agreed(i.Context.Context, i.App.Reader) {
			return &failure{code: exitFailed, what: "drill", err: errors.New("nothing was done: you did not answer y"), hint: ""}
		}
	}
	if err := d.window.check(time.Now()); err != nil {
		return err
	}
	if err := d.act(); err != nil {
		return err
	}
	return d.answer(false)
}

func newDrill(i *invocation) (*drillRun, error) {
	name, err := i.election()
	if err != nil {
		return nil, err
	}
	d := &drillRun{invocation: i, limit: drillLimit, to: i.String("to"),
		report: drillReport{Election: name, How: api.DrillTransfer, Why: []string{}, Notes: []string{}, Elections: []drilledElection{}, Agents: []drilledAgent{}}}
	chosen := 0
	for _, how := range []string{api.DrillTransfer, api.DrillStop, api.DrillKill} {
		if i.Bool(how) {
			d.report.How = how
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return nil, usage("write one of --transfer, --stop and --kill", "drill: more than one of --transfer, --stop and --kill")
	case i.IsSet("to") && d.report.How != api.DrillTransfer:
		return nil, usage("--to goes with --transfer: after a stop or a kill the agents elect", "drill: --to with --%s", d.report.How)
	case i.IsSet("to") && !election.ValidName(d.to):
		return nil, usage(nameRule, "drill: --to: %q is not a valid agent name", d.to)
	}
	if i.IsSet("timeout") {
		if d.limit, err = time.ParseDuration(i.String("timeout")); err != nil || d.limit <= 0 || d.limit > time.Hour {
			return nil, usage("write --timeout 30s, at most 1h", "drill: --timeout %q is not a valid time", i.String("timeout"))
		}
	}
	if d.window, err = parseWindow(i.String("window")); err != nil {
		return nil, err
	}
	if err := d.window.check(time.Now()); err != nil {
		return nil, err
	}
	d.client = i.client()
	return d, nil
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
