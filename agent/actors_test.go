package agent

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/agent/campaign"
	"github.com/doyen-election/doyen/agent/hook"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
)

// former is what an earlier life left of payments, which it led in term 4.
func former(a record.Actors) *record.Past {
	return &record.Past{
		Past: election.Past{LifeRecord: election.LifeRecord{Rows: []election.Authority{
			{Election: pay, Highest: 4, Term: 4, Until: election.Instant(lease), Priority: 100}}}},
		Actors: map[election.Name]record.Actors{pay: a},
	}
}

// reborn is a rig whose core leads on.
func reborn(t *testing.T, past *record.Past) *rig {
	t.Helper()
	r := newRig(t, nil)
	r.status.Quorum.Enabled = true
	r.status.Contests = []*elector.ContestStatus{{Election: pay, State: elector.Leading, Leader: r.loop.self, Term: 4, ValidUntil: election.Instant(lease)}}
	r.loop.past = past
	r.loop.campaigns = campaign.New(campaign.Config{Priority: 100, NewID: newCampaignID, Step: lease / 10, Past: ledBefore(past, true)})
	r.loop.publish(r.loop.clock())
	return r
}

// A hook is not run for what goes on; one that ended with its agent is run under a higher term,
// and one that had not begun yet under this one (K4d).
func TestTheHookOfALeadershipThatGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		ran      record.Hook
		overtake bool
		event    string
	}{
		"finished": {ran: record.Hook{Term: 4, Finished: true}},
		"cut off":  {ran: record.Hook{Term: 4}, overtake: true},
		"not yet":  {ran: record.Hook{Term: 3, Finished: true}, event: "leading 4"},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir() + "/out"
			r := reborn(t, former(record.Actors{Hook: c.ran}))
			noted := newActors(r.loop.past, func(n election.Name, a record.Actors) error {
				r.note("record:" + strconv.Itoa(int(a.Hook.Term)) + ":" + strconv.FormatBool(a.Hook.Finished))
				return nil
			})
			r.loop.hooks = hook.Start(hook.Commands{Others: "echo $DOYEN_EVENT $DOYEN_TERM >> " + out, Limit: time.Minute, Ran: noted.hook}, r.loop.logger)
			r.loop.announceStart()
			r.loop.hooks.Close(t.Context())
			if got := strings.TrimSpace(readFile(t, out)); got != c.event {
				t.Errorf("it was run for %q, want %q", got, c.event)
			}
			overtaken := len(r.loop.queue) == 1 && r.loop.queue[0] == election.Input(election.Overtake{Election: pay})
			if overtaken != c.overtake {
				t.Errorf("the core gets %v", r.loop.queue)
			}
			if want := map[bool]string{true: "record:4:false record:4:true"}[c.event != ""]; !strings.HasSuffix(r.happened(), want) || want == "" && strings.Contains(r.happened(), "record") {
				t.Errorf("on record came %q, want %q", r.happened(), want)
			}
		})
	}
}

// Its leadership has ended, or was never this agent's: whatever the hook started, it stops.
func TestTheHookRunsAtTheStartForWhatTheAgentLeadsNoMore(t *testing.T) {
	out := t.TempDir() + "/out"
	past := former(record.Actors{Hook: record.Hook{Term: 4, Finished: true}})
	past.Rows[0] = election.Authority{Election: pay, Highest: 4}
	r := reborn(t, past)
	r.loop.hooks = hook.Start(hook.Commands{Others: "echo $DOYEN_ELECTION $DOYEN_EVENT >> " + out, Limit: time.Minute}, r.loop.logger)
	r.loop.announceStart()
	r.loop.hooks.Close(t.Context())
	if got := strings.TrimSpace(readFile(t, out)); got != "payments none" {
		t.Errorf("it was run for %q", got)
	}
}

// What is on record of a program is there before it can read the line.
func TestTheActorsAreOnRecordBeforeTheProgramIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var k *campaign.Candidacy
		var told []string
		actors := newActors(nil, func(_ election.Name, a record.Actors) error {
			lines, _ := k.Take()
			told = append(told, strconv.Itoa(len(lines))+" lines before "+strconv.Itoa(int(a.Program.Told)))
			return nil
		})
		registry := campaign.New(campaign.Config{Priority: 100, NewID: newCampaignID, Step: lease / 10, Record: actors.program})
		r.loop.campaigns = registry
		k, _ = registry.Stand(0, campaign.Request{Election: pay})
		registry.Lead(0, pay, 4, election.Instant(lease))
		registry.Rise(pay, 5, election.Instant(2*lease))
		if got := strings.Join(told, ", "); got != "1 lines before 4, 1 lines before 5" {
			t.Error(got) // the candidate line; then the elected line, which it reads here
		}
		if got := kinds(k); got != "renewed" {
			t.Errorf("told %q", got)
		}
	})
}

// readFile returns what a hook wrote, if it did.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}
