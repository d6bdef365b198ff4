package agent

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/doyen-election/doyen/agent/campaign"
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
		registry.Lead(0, pay, 4, election.Instant(lease), nil)
		registry.Rise(pay, 5, election.Instant(2*lease), nil)
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
