package words

import (
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/jobs"
)

// Job returns, as the API shows it, the job that an election's word describes.
func Job(name string, w jobs.Word) api.Job {
	j := api.Job{Election: name, Kind: string(w.Kind), Spec: w.Spec, Zone: w.Zone, Done: w.Done, Unknown: w.Unknown}
	if r := w.Runs(); r != nil {
		j.Running = &api.JobRun{Occurrence: r.At, Term: r.Term, Try: r.Try, Since: r.Since}
	}
	if e := w.Last; e != nil {
		j.Last = &api.JobEnd{Occurrence: e.At, Try: e.Try, End: string(e.Result), Code: e.Code, When: e.When}
	}
	if w.Missed != nil {
		j.Missed = w.Missed.N
	}
	for end, n := range w.Total {
		if j.Total == nil {
			j.Total = map[string]int{}
		}
		j.Total[string(end)] = n
	}
	if next, ok := w.Next(); ok {
		j.Next = &next
	}
	return j
}
