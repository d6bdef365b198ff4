package loop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/jobs"
)

// jobBook has the jobs that the words on this voter's disk describe, sorted by name. They may be out of date: the
// other voters may have a newer word. Readers share the slice, so it is replaced, never changed.
type jobBook []api.Job

// note updates the jobs from the words of a write. If the state of that write keeps no words, note drops all former jobs.
func (b *jobBook) note(p election.Persist) {
	all, kept := map[string]api.Job{}, p.State == nil || p.State.KeepsWords
	if kept && len(p.Words) == 0 {
		return
	}
	if kept {
		for _, j := range *b {
			all[j.Election] = j
		}
	}
	for _, w := range p.Words {
		delete(all, string(w.Election))
		if job, err := jobs.Parse(w.Word.Text); err == nil && w.Word.Text != "" {
			all[string(w.Election)] = words.Job(string(w.Election), job)
		}
	}
	*b = slices.SortedFunc(maps.Values(all), func(a, b api.Job) int { return cmp.Compare(a.Election, b.Election) })
}

// warnings returns a warning about each job of which nobody knows how its newest run ended.
func (b *jobBook) warnings() (all []api.Warning) {
	for _, j := range *b {
		if e := j.Last; e != nil && e.End == string(jobs.Unknown) {
			all = append(all, api.Warning{Code: warnJobUnknown, Message: fmt.Sprintf(
				"nobody knows how %s of the job %s ended: what started it died first. Look at what it did; this warning ends with its next run", e.Occurrence, j.Election)})
		}
	}
	return all
}
