package loop

import (
	"fmt"
	"maps"
	"slices"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/jobs"
)

// jobBook is what the words on this voter's disk say of jobs. A leader may have written a newer word.
type jobBook struct {
	all   map[election.Name]api.Job
	shown []api.Job // sorted by name; replaced by a new slice, never changed
}

// note takes over the words of a write.
func (b *jobBook) note(p election.Persist) {
	before := len(b.all)
	if b.all == nil || p.State != nil && !p.State.KeepsWords {
		b.all = map[election.Name]api.Job{}
	}
	for _, w := range p.Words {
		delete(b.all, w.Election)
		if job, err := jobs.Parse(w.Word.Text); err == nil && w.Word.Text != "" {
			b.all[w.Election] = words.Job(string(w.Election), job)
		}
	}
	if len(p.Words) > 0 || len(b.all) != before {
		b.shown = make([]api.Job, 0, len(b.all))
		for _, name := range slices.Sorted(maps.Keys(b.all)) {
			b.shown = append(b.shown, b.all[name])
		}
	}
}

// warnings names the jobs whose newest end nobody knows.
func (b *jobBook) warnings() (all []api.Warning) {
	for _, j := range b.shown {
		if e := j.Last; e != nil && e.End == string(jobs.Unknown) {
			all = append(all, api.Warning{Code: warnJobUnknown, Message: fmt.Sprintf(
				"nobody knows how %s of the job %s ended: what started it died first. Look at what it did; this warning ends with its next run", e.Occurrence, j.Election)})
		}
	}
	return all
}
