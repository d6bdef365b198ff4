package loop

import (
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/jobs"
)

func TestTheBookOfJobsHasTheWordsThatAreJobs(t *testing.T) {
	named := func(e election.Name, text string) election.NamedWord {
		return election.NamedWord{Election: e, Word: election.Word{Rank: election.WordRank{Term: 1, Seq: 1}, Text: text}}
	}
	cron := jobs.Word{Version: 1, Kind: jobs.Cron, Spec: "0 3 * * *", Done: "2026-11-23T03:00:00Z",
		Last: &jobs.End{At: "2026-11-23T03:00:00Z", Try: 1, Result: jobs.Unknown}}
	var b jobBook
	b.note(election.Persist{Words: []election.NamedWord{named("plain", "no job"), named("migrate", `{"v":1,"kind":"key","done":"migrate"}`), named("backup", cron.Text()), named("deleted", "")}})
	if len(b) != 2 || b[0].Election != "backup" || b[0].Next == nil || b[1].Done != "migrate" {
		t.Errorf("%+v", b)
	}
	if w := b.warnings(); len(w) != 1 || w[0].Code != warnJobUnknown || !strings.Contains(w[0].Message, "2026-11-23T03:00:00Z of the job backup") {
		t.Errorf("warnings %+v", w)
	}
	cron.Last.Result = jobs.Finished
	b.note(election.Persist{Words: []election.NamedWord{named("backup", cron.Text()), {Election: "migrate"}}})
	if len(b) != 1 || b[0].Last.End != "finished" || len(b.warnings()) != 0 {
		t.Errorf("after a run and a deletion: %+v", b)
	}
	b.note(election.Persist{State: &election.State{}})
	if len(b) != 0 {
		t.Errorf("not a voter any more: %+v", b)
	}
}
