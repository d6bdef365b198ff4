package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/plan"
)

// drilled answers as agent b of testdata/agents/drilled.txtar, beside the leader a, and c. Once a drill was
// requested, the function `after` changes what the agents answer.
type drilled struct {
	socket string
	after  func(views []api.DrillView, elections []api.Election)
	look   func() // called when the agents are asked after the drill

	mu        sync.Mutex
	views     []api.DrillView
	elections []api.Election
	asked     []string // the bodies of the drills
}

func newDrilled(t *testing.T) *drilled {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "doyen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	archive, err := txtar.ParseFile("testdata/agents/drilled.txtar")
	if err != nil {
		t.Fatal(err)
	}
	f := &drilled{socket: filepath.Join(dir, "s")}
	bodies := map[string][]byte{}
	for _, file := range archive.Files {
		bodies[file.Name] = file.Data
	}
	var drills api.Drills
	var elections api.Elections
	if json.Unmarshal(bodies["GET /v1/elections/default/drill"], &drills) != nil || json.Unmarshal(bodies["GET /v1/elections"], &elections) != nil {
		t.Fatal("the scenario can't be read")
	}
	f.views, f.elections = drills.Agents, elections.Elections
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, bodies) })}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return f
}

func (f *drilled) serve(w http.ResponseWriter, r *http.Request, bodies map[string][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch call := r.Method + " " + r.URL.Path; call {
	case "GET /v1/elections/default/drill":
		if len(f.asked) > 0 && f.look != nil {
			f.look()
		}
		json.NewEncoder(w).Encode(api.Drills{Agents: f.views})
	case "GET /v1/elections":
		json.NewEncoder(w).Encode(api.Elections{Elections: f.elections})
	case "GET /v1/elections/default":
		json.NewEncoder(w).Encode(f.elections[0])
	case "POST /v1/elections/default/drill":
		body, _ := io.ReadAll(r.Body)
		f.asked = append(f.asked, string(body))
		if f.after != nil {
			f.after(f.views, f.elections)
		}
		fmt.Fprint(w, `{"done":true,"message":"","waited_ms":3}`)
	default:
		w.Write(bodies[call])
	}
}

// lead makes this host's agent the leader.
func (f *drilled) lead() {
	for i := range f.elections {
		f.elections[i].Leader, f.elections[i].IsLeader = &api.Leader{Name: "b", ID: "B"}, true
	}
}

// leads makes the witness report that another agent leads in the next term, that long after now.
func leads(views []api.DrillView, elections []api.Election, witness, leader string, after, none time.Duration) {
	for i, v := range views {
		for j := range elections {
			e := &elections[j]
			if v.Name == witness {
				views[i].Changes = append(views[i].Changes, api.Transition{Time: time.Now(), Election: e.Election, Type: api.ChangeLeader,
					Leader: &api.Leader{Name: leader, ID: strings.ToUpper(leader)}, Term: e.Term + 1, BoottimeNS: alarm.Now() + int64(after), VacantMS: none.Milliseconds(), GapMS: after.Milliseconds()})
			}
		}
	}
}

func restarts(views []api.DrillView, name string) {
	i := slices.IndexFunc(views, func(v api.DrillView) bool { return v.Name == name })
	views[i].BootID += "2"
}

func (f *drilled) run(t *testing.T, ctx context.Context, args ...string) (code int, r drillReport, problems string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(ctx, append([]string{"doyen", "drill", "--socket", f.socket, "-o", "json"}, args...), nil, &out, &errs)
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", &out, err)
		}
	}
	return code, r, errs.String()
}

func TestADrillIsComparedWithItsPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		before func(*drilled)
		after  func([]api.DrillView, []api.Election)
		code   int
		why    string // the first reason
		note   string
	}{
		"transfer": {[]string{"--transfer"}, nil, func(v []api.DrillView, e []api.Election) {
			leads(v, e, "b", "b", 9*time.Millisecond, 4*time.Millisecond)
		}, 0, "", ""},
		"transfer to another one": {[]string{"--to", "c"}, nil, func(v []api.DrillView, e []api.Election) { leads(v, e, "b", "b", 0, 0) }, 1, "b leads default, not c", ""},
		"too late":                {nil, nil, func(v []api.DrillView, e []api.Election) { leads(v, e, "b", "b", time.Minute, time.Minute) }, 1, "default was without its leader for 1m", ""},
		"stop": {[]string{"--stop"}, nil, func(v []api.DrillView, e []api.Election) {
			restarts(v, "a")
			leads(v, e, "b", "b", 9*time.Millisecond, 0)
		}, 0, "", ""},
		"stop, and it stays away": {[]string{"--stop", "--timeout", "1s"}, nil, func(v []api.DrillView, e []api.Election) {
			v[0].Reached = false
			leads(v, e, "b", "b", 9*time.Millisecond, 0)
		}, 1, "a has not come back within 1s; start the agent on the host a", ""},
		// This host's agent was down, so another one is the witness.
		"on the leader's host": {[]string{"--stop"}, (*drilled).lead, func(v []api.DrillView, e []api.Election) {
			restarts(v, "b")
			leads(v, e, "b", "c", 0, 0)
			leads(v, e, "a", "a", 9*time.Millisecond, 0)
		}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newDrilled(t)
			f.after = c.after
			if c.before != nil {
				c.before(f)
			}
			code, r, problems := f.run(t, t.Context(), c.args...)
			if code != c.code || r.AsPlanned != (code == 0) || len(f.asked) != 1 || !r.Done || r.At == nil {
				t.Fatalf("exit code %d, want %d: %+v, asked %v; %s", code, c.code, r, f.asked, problems)
			}
			if c.why != "" && (len(r.Why) == 0 || !slices.ContainsFunc(r.Why, func(w string) bool { return strings.HasPrefix(w, c.why) })) {
				t.Errorf("why: %q, want %q", r.Why, c.why)
			}
			if got := strings.Join(r.Notes, "; "); c.note != "" && !strings.HasPrefix(got, c.note) {
				t.Errorf("notes: %q, want %q", got, c.note)
			}
			if page := r.page(); !strings.Contains(page, "\nELECTION  LEADER") || strings.HasSuffix(page, "\nas planned\n") != r.AsPlanned {
				t.Errorf("%s", page)
			}
		})
	}
}

// The test can't run the drill: it would kill this test binary, which plays the agent.
func TestAKilledAgentIsToLeadOn(t *testing.T) {
	begun := drillRun{state: state{agent: api.Agent{Name: "b", ID: "B", LeaseMS: 1200}}, leader: api.DrillView{ID: "B", Record: true}, report: drillReport{How: api.DrillKill, Agent: "b"}}
	e := begun.foreseen(plan.Forecast{Election: "default", Leader: "b", Term: 7, Then: []plan.Reign{{Leaders: []string{"a"}, Term: 8, LatestMS: 1900}}})
	leader := func(name string, term uint64) []api.Election {
		return []api.Election{{Election: "default", Leader: &api.Leader{Name: name, ID: strings.ToUpper(name)}, Term: term}}
	}
	for name, c := range map[string]struct {
		after     func([]api.DrillView)
		elections []api.Election
		why       string
	}{
		"it does":         {func([]api.DrillView) {}, leader("b", 7), ""},
		"nobody leads":    {func([]api.DrillView) {}, []api.Election{{Election: "default"}}, "nobody was seen to lead default afterwards"},
		"in another term": {func(v []api.DrillView) { leads(v, leader("b", 7), "a", "b", time.Second, time.Second) }, leader("b", 8), "b leads default in term 8: it was to go on in term 7"},
		"another one":     {func(v []api.DrillView) { leads(v, leader("b", 7), "a", "a", time.Second, time.Second) }, leader("a", 8), "a leads default, not b"},
	} {
		seen := []api.DrillView{{Name: "b", ID: "B", Reached: true, BootID: "B2"}, {Name: "a", ID: "A", Reached: true}}
		c.after(seen)
		d := begun
		d.invocation, d.back, d.report.Elections = &invocation{Context: &cli.Context{Context: t.Context()}}, true, []drilledElection{e}
		d.report.Elections[0].Was = d.measured(e, seen, c.elections)
		d.judge()
		if got := strings.Join(d.report.Why, "; "); got != c.why {
			t.Errorf("%s: %q, want %q", name, got, c.why)
		}
	}
}

func TestAnAgentIsKilledOnItsOwnHost(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*drilled)
		why    string
	}{
		"another one leads": {func(*drilled) {}, "an agent is killed on its own host, and a leads default"},
		"no keeper":         {func(f *drilled) { f.views[1].Keeper = false; f.lead() }, "the agent of this host has no keeper"},
		"elsewhere":         {func(f *drilled) { f.lead() }, "the agent reports that it is process 4242; here it is process"},
		"no longer": {func(f *drilled) {
			f.lead()
			f.elections[0].IsLeader = false
		}, "this agent no longer leads default in term 7 as it was planned"},
	} {
		f := newDrilled(t)
		c.before(f)
		code, _, problems := f.run(t, t.Context(), "--kill", "--yes")
		if code != exitFailed || !strings.Contains(problems, c.why) {
			t.Errorf("%s: %d, %q, want %q", name, code, problems, c.why)
		}
	}
}

func TestAnInterruptedDrillReportsWhatWasDone(t *testing.T) {
	f := newDrilled(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	f.look = interrupt
	code, r, problems := f.run(t, ctx, "--stop", "--timeout", "30s")
	if code != exitFailed || !r.Done || !r.Interrupted || !strings.Contains(strings.Join(r.Why, ";"), "interrupted: the agent a hands over") {
		t.Errorf("%d %+v %s", code, r, problems)
	}
}

func TestADrillWaitsUntilTheAgentsAreAtRest(t *testing.T) {
	f := newDrilled(t)
	f.views[1].Changes = []api.Transition{{Election: "default", Type: api.ChangeLeader, BoottimeNS: alarm.Now() - int64(2200*time.Millisecond)}}
	code, r, problems := f.run(t, t.Context(), "--dry-run")
	if code != 0 || r.Done || problems != "" && !strings.HasSuffix(problems, "until the agents are at rest\n") { // the problem is missing if this test was too slow

		t.Errorf("%d %+v %s", code, r, problems)
	}
}

func TestAWindowMayGoOverMidnight(t *testing.T) {
	for text, c := range map[string]struct{ inside, outside []string }{
		"02:00-04:00":   {[]string{"02:00", "03:59"}, []string{"01:59", "04:00", "14:00"}},
		"22:30 - 01:00": {[]string{"22:30", "23:59", "00:00", "00:59"}, []string{"22:29", "01:00", "12:00"}},
		"":              {[]string{"00:00", "12:00"}, nil},
	} {
		for _, at := range append(slices.Clone(c.inside), c.outside...) {
			now, err := time.ParseInLocation("15:04", at, time.Local)
			if err != nil {
				t.Fatal(err)
			}
			if got := within(text, now) == nil; got != slices.Contains(c.inside, at) {
				t.Errorf("%q at %s: inside is %t", text, at, got)
			}
		}
	}
	for _, bad := range []string{"02:00", "-", "2-4", "25:00-26:00", "02:00-02:00", "02:00-03:00-04:00"} {
		if err := within(bad, time.Now()); err == nil || report(io.Discard, err) != exitUsage {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestOnlyAYesIsAgreement(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, " YES \n": true, "y": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		if got := agreed(t.Context(), strings.NewReader(answer)); got != want {
			t.Errorf("%q: %t", answer, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, _ := io.Pipe()
	if agreed(ctx, in) {
		t.Error("an interrupt counts as agreement")
	}
}
