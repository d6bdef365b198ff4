package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/transport"
)

func TestTheTimeWithoutALeaderIsCounted(t *testing.T) {
	at := func(s int) election.Instant { return election.Instant(s) * election.Instant(time.Second) }
	picture := func(led ...int) *serve.Picture { // until when default and payments are led; 0: not led
		var all []*elector.ContestStatus
		for i, until := range led {
			c := &elector.ContestStatus{Election: []election.Name{"default", "payments"}[i], ValidUntil: at(until)}
			if until > 0 {
				c.Leader = election.Holder{Peer: "b"}
			}
			all = append(all, c)
		}
		return &serve.Picture{Status: &elector.Status{Contests: all}, Expected: []election.Name{"wanted"}}
	}
	var l leaders
	for _, c := range []struct {
		now, due int
		shown    *serve.Picture // nil: only the counts are read
		want     [3]int         // seconds without a leader: of default, payments and wanted
	}{
		{100, 105, picture(0, 102), [3]int{0, 0, 0}}, // the time before the first picture is not counted
		{101, 0, nil, [3]int{1, 0, 1}},               // default has no leader; the lease of payments still runs
		{104, 0, nil, [3]int{4, 2, 4}},               // the lease of payments has expired
		{104, 0, nil, [3]int{4, 2, 4}},
		{103, 0, nil, [3]int{4, 2, 4}}, // a reader with an older instant
		{106, 107, picture(108), [3]int{6, 4, 6}},
		{107, 110, picture(150), [3]int{6, 4, 7}},  // payments does not exist any more
		{115, 0, nil, [3]int{6, 4, 15}},            // the loop is busy
		{3600, 0, nil, [3]int{6, 4, 15}},           // the agent did not run: a scrape does not count that time
		{3601, 3602, picture(0), [3]int{6, 4, 15}}, // the loop does not count that time either
		{3602, 0, nil, [3]int{7, 4, 16}},
	} {
		if c.shown != nil {
			l.show(at(c.now), c.shown)
			l.wake(at(c.due))
		}
		for i, name := range []string{"default", "payments", "wanted"} {
			if _, got := l.Count(at(c.now), name); got != time.Duration(c.want[i])*time.Second {
				t.Errorf("at %d: %s had no leader for %v, want %ds", c.now, name, got, c.want[i])
			}
		}
	}
}

// A report of availability must not count a time in which the agent did not run as led.
func TestAPauseIsInTheHistoryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(in election.Input) election.Output { return election.Output{WakeAt: election.Never} })
		born, asleep := time.Now(), time.Duration(0)
		r.loop.Clock = func() election.Instant { return election.Instant(time.Since(born) + asleep) }
		r.answer = func(election.Input) election.Output { return election.Output{WakeAt: r.loop.Clock().Add(time.Second)} }
		r.start(t)
		synctest.Wait()
		for _, pause := range []time.Duration{5 * time.Second, time.Hour} {
			asleep += pause
			r.slept.Store(1)
			r.loop.Programs().Campaigns() // a call, which does not set when the loop is due
			r.hear(transport.Message{Peer: "b", Message: election.HeartbeatAck{}})
			synctest.Wait()
		}
		entries := r.loop.History.List("any", 10)
		if len(entries) != 1 || entries[0].Type != api.ChangePaused || entries[0].Election != "" || entries[0].DownMS != time.Hour.Milliseconds()-1000 {
			t.Errorf("%+v", entries)
		}
		r.cancel()
	})
}
