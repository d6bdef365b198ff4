package agent

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/agent/pages"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/leasepage"
)

// A life may die after it recorded the end of a leadership and before it wiped the lease page. The next life wipes
// that page before anything else: programs would act on it (K4, H5).
func TestOnlyThePagesOfWhatIsLedOnAreAdopted(t *testing.T) {
	until := boottime.Now().Add(time.Hour)
	past := &record.Past{Past: election.Past{LifeRecord: election.LifeRecord{Rows: []election.Authority{
		{Election: "leads", Highest: 2, Term: 2, Until: until},
		{Election: "ends", Highest: 2, Term: 2, Until: until, Ending: election.Ending{Reason: election.ReasonResigned, StopBy: until}},
		{Election: "follows", Highest: 2},
		{Election: "forever", Highest: 2, Term: 2, Until: election.Never},
	}}}}
	dir := filepath.Join(t.TempDir(), "leases")
	if err := pages.Open(dir, 1, nil).Close(); err != nil { // makes the directory
		t.Fatal(err)
	}
	held := map[string]*leasepage.Reader{}
	for _, row := range past.Rows {
		w, err := leasepage.Create(dir, string(row.Election), 1)
		if err == nil {
			err = w.Set(2, int64(until))
		}
		if err == nil {
			held[string(row.Election)], err = leasepage.Open(filepath.Join(dir, string(row.Election)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	k := pages.Open(dir, 1, ledOn(past))
	defer k.Close()
	var valid []string
	for name, r := range held {
		if r.Valid() {
			valid = append(valid, name)
		}
		_ = r.Close()
	}
	if !slices.Equal(valid, []string{"leads"}) || k.Problem() != "" {
		t.Errorf("the pages that tell of a lease are %q, want that of what is led on; problem %q", valid, k.Problem())
	}
}
