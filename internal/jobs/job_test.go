package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var base = time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)

func minute(n float64) time.Time { return base.Add(time.Duration(n * float64(time.Minute))) }

// stage is a job, and the word that its host writes.
type stage struct {
	t    *testing.T
	job  *Job
	text string
	term uint64
	log  []string // what the job did, in order
}

func cronConfig(change func(*Config)) Config {
	c := Config{Name: "pay", Kind: Cron, Spec: "0 * * * *"}
	if change != nil {
		change(&c)
	}
	return c
}

func host(t *testing.T, c Config) *stage {
	t.Helper()
	j, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t: t, job: j}
}

// step gives the job an event, and acknowledges all its writes at once.
func (s *stage) step(n float64, e Event) Output {
	s.t.Helper()
	out := s.raw(n, e)
	for out.Write != "" {
		s.text = out.Write
		out = s.raw(n, Written{Text: s.text})
	}
	return out
}

func (s *stage) raw(n float64, e Event) Output {
	s.t.Helper()
	out := s.job.Step(minute(n), e)
	if len(out.Write) > MaxText {
		s.t.Fatalf("a word of %d bytes: %s", len(out.Write), out.Write)
	}
	for _, r := range out.Reports {
		line := string(r.What)
		for _, x := range []string{r.From, r.To, string(r.Result)} {
			if x != "" && x != string(Unknown) {
				line += " " + strings.TrimSuffix(strings.TrimPrefix(x, "2026-11-23T"), ":00Z")
			}
		}
		if r.Again {
			line += " again"
		}
		s.log = append(s.log, line)
	}
	if out.Write != "" {
		s.log = append(s.log, "write")
	}
	if out.Start != nil {
		s.log = append(s.log, fmt.Sprintf("start %s try %d", strings.TrimSuffix(strings.TrimPrefix(out.Start.Occurrence, "2026-11-23T"), ":00Z"), out.Start.Try))
	}
	if out.Exit != nil {
		s.log = append(s.log, fmt.Sprintf("exit %d", *out.Exit))
	}
	if out.HandOver != "" {
		s.log = append(s.log, "hand over")
	}
	if !out.Wake.IsZero() {
		s.log = append(s.log, "wake "+out.Wake.Format("15:04"))
	}
	return out
}

// leads begins a leadership with the word of the former stage.
func (s *stage) leads(n float64, former *stage) *stage {
	s.t.Helper()
	if former != nil {
		s.text, s.term = former.text, former.term
	}
	s.term++
	s.step(n, Leads{Term: s.term, Text: s.text})
	return s
}

func (s *stage) want(lines ...string) {
	s.t.Helper()
	if !slices.Equal(s.log, lines) {
		s.t.Errorf("it did\n  %s\nwant\n  %s", strings.Join(s.log, "\n  "), strings.Join(lines, "\n  "))
	}
	s.log = nil
}

// due returns a host that leads from 2:59 on and has claimed 3:00.
func due(t *testing.T, change func(*Config)) *stage {
	t.Helper()
	s := host(t, cronConfig(change)).leads(-1, nil)
	s.step(0, Tick{})
	s.want("write", "wake 03:00", "write", "start 03:00 try 1")
	return s
}

func TestJ1ClocksThatDifferNeverRepeatAnOccurrence(t *testing.T) {
	a := due(t, nil)
	a.step(1, Ended{Result: Finished})
	b := host(t, cronConfig(nil)).leads(-1, a) // b's clock is two minutes behind
	b.step(0, Tick{})
	b.step(2, Tick{})
	b.want("ended 03:00 finished again", "wake 04:00", "wake 04:00", "wake 04:00")
}

func TestJ2TheClaimIsAcknowledgedBeforeTheStart(t *testing.T) {
	s := host(t, cronConfig(nil)).leads(-1, nil)
	s.log = nil
	claim := s.raw(0, Tick{})
	s.raw(0.1, Tick{})
	s.raw(0.1, Written{Text: "of a former term"})
	s.want("write")
	// The answer to the write is another word, so the claim was not made. The job claims again.
	s.raw(0.2, Leads{Term: 1, Text: s.text})
	s.want("write")
	// The answer to the second write is lost, but the word has the claim.
	again := s.job.pending.word.Text()
	if claim.Write == again {
		t.Fatal("the claim has the time of the former one")
	}
	s.raw(0.3, Leads{Term: 1, Text: again})
	s.want("start 03:00 try 1")
}

func TestJ2TheEnvironmentNamesTheOccurrence(t *testing.T) {
	s := host(t, cronConfig(nil)).leads(-1, nil)
	out := s.step(0, Tick{})
	want := []string{"DOYEN_OCCURRENCE=2026-11-23T03:00:00Z", "DOYEN_TRY=1", "DOYEN_KEY=pay/2026-11-23T03:00:00Z"}
	if !slices.Equal(out.Start.Env, want) {
		t.Errorf("%q", out.Start.Env)
	}
	k := host(t, Config{Name: "migrate", Kind: Key})
	if out = k.step(0, Leads{Term: 7}); !slices.Contains(out.Start.Env, "DOYEN_KEY=migrate") {
		t.Errorf("%q", out.Start.Env)
	}
}

func TestJ3DonePassesAnOccurrenceOnlyWithItsEndOrItsNote(t *testing.T) {
	s := due(t, func(c *Config) { c.Spec = "* * * * *" })
	if w, _ := Parse(s.text); w.Done != "2026-11-23T02:59:00Z" || w.Run == nil || w.Run.At != "2026-11-23T03:00:00Z" {
		t.Errorf("claimed: %s", s.text)
	}
	out := s.raw(3, Ended{Result: Failed, Code: 3}) // the write has the end, the missed occurrences and the next claim
	w, _ := Parse(out.Write)
	if w.Done != "2026-11-23T03:02:00Z" || w.Missed == nil || *w.Missed != (Span{2, "2026-11-23T03:01:00Z", "2026-11-23T03:02:00Z"}) || w.Run.At != "2026-11-23T03:03:00Z" || w.Last.Code != 3 {
		t.Errorf("ended and claimed: %s", out.Write)
	}
	s.text = out.Write // the leader dies before it reports
	b := host(t, cronConfig(func(c *Config) { c.Spec = "* * * * *" })).leads(3, s)
	b.want("ended 03:00 failed again", "missed 03:01 03:02 again", "write", "unknown 03:03", "skipped 03:03", "wake 03:04")
}

func TestJ3DoneNeverFalls(t *testing.T) {
	a := due(t, nil)
	// The next leader runs the former claim again. Its spec differs, and counts only from later on.
	b := host(t, cronConfig(func(c *Config) { c.Spec, c.Rerun = "*/5 * * * *", true })).leads(20, a)
	b.step(21, Ended{Result: Finished})
	b.want("differs", "write", "changed", "unknown 03:00", "start 03:00 try 2", "write", "ended 03:00 finished", "start 03:20 try 1")
}

func TestJ4AClaimOfAFormerTermIsSkippedAndReported(t *testing.T) {
	a := due(t, nil)
	host(t, cronConfig(nil)).leads(1, a).want("write", "unknown 03:00", "skipped 03:00", "wake 04:00")
}

func TestJ4AClaimOfAFormerTermIsClaimedAgain(t *testing.T) {
	a := due(t, nil)
	b := host(t, cronConfig(func(c *Config) { c.Rerun = true })).leads(1, a)
	b.step(2, Ended{Result: Finished})
	b.want("write", "unknown 03:00", "start 03:00 try 2", "write", "ended 03:00 finished", "wake 04:00")
}

func TestJ4WhatRunsHereIsNotOfAFormerTerm(t *testing.T) {
	s := due(t, nil)
	s.step(1, Leads{Term: 2, Text: s.text}) // the term rises during the run
	s.step(2, Ended{Result: Finished})
	s.want("write", "ended 03:00 finished", "wake 04:00")
}

func TestJ4StoppedIsMarkedBeforeTheReceipt(t *testing.T) {
	for _, rerun := range []bool{false, true} {
		s := due(t, func(c *Config) { c.Rerun = rerun })
		s.step(1, Stopping{})
		if s.job.Idle() {
			t.Error("the receipt could be given while the command runs")
		}
		s.raw(1, Ended{Result: Stopped})
		if s.job.Idle() {
			t.Error("the receipt could be given before the end is marked")
		}
		s.text = s.job.pending.word.Text()
		s.raw(1, Written{Text: s.text})
		s.want("write", "ended 03:00 stopped")
		if !s.job.Idle() {
			t.Error("marked, and not idle")
		}
		b := host(t, cronConfig(func(c *Config) { c.Rerun = rerun })).leads(2, s)
		if rerun {
			b.want("ended 03:00 stopped again", "write", "start 03:00 try 2")
		} else {
			b.want("ended 03:00 stopped again", "wake 04:00")
		}
	}
}

func TestJ5TheFirstLeaderWritesFromWhenOnItCounts(t *testing.T) {
	a := host(t, cronConfig(nil)).leads(-10, nil)
	a.want("write", "wake 03:00")
	host(t, cronConfig(nil)).leads(1, a).want("write", "start 03:00 try 1") // 3:00 came due while no agent led
}

func TestJ6WhatIsLateIsMissed(t *testing.T) {
	every := func(change func(*Config)) func(*Config) {
		return func(c *Config) { c.Spec = "*/2 * * * *"; change(c) }
	}
	for _, c := range []struct {
		what   string
		change func(*Config)
		want   []string
	}{
		{"the last one", func(*Config) {}, []string{"write", "missed 03:02 03:14", "start 03:16 try 1"}},
		{"all in time", func(c *Config) { c.Missed = All }, []string{"write", "missed 03:02 03:10", "start 03:12 try 1"}},
		{"more in time", func(c *Config) { c.Missed = All; c.Late = 7 * time.Minute }, []string{"write", "missed 03:02 03:08", "start 03:10 try 1"}},
		{"none", func(c *Config) { c.Missed = None; c.Spec = "*/8 * * * *" }, []string{"write", "missed 03:08 03:08", "start 03:16 try 1"}},
		{"none is in time", func(c *Config) { c.Spec = "0-10/2 * * * *" }, []string{"write", "missed 03:02 03:10", "wake 04:00"}},
	} {
		s := host(t, cronConfig(every(c.change))).leads(0, nil)
		t.Log(c.what)
		s.log = nil
		if c.what == "none" { // the next leadership begins three minutes after 3:16
			host(t, cronConfig(every(c.change))).leads(19, s).want("write", "missed 03:08 03:16", "wake 03:24")
		}
		host(t, cronConfig(every(c.change))).leads(17, s).want(c.want...)
	}
}

func TestJ6NoneRunsNothingThatCameDueWhileAnotherRan(t *testing.T) {
	s := due(t, func(c *Config) { c.Spec = "*/2 * * * *"; c.Missed = None })
	s.step(3, Ended{Result: Finished})
	s.step(4, Tick{})
	s.want("write", "ended 03:00 finished", "missed 03:02 03:02", "wake 03:04", "write", "start 03:04 try 1")
}

func TestJ7AJumpedClockHandsOverOnceAndClaimsNothing(t *testing.T) {
	s := host(t, cronConfig(nil)).leads(-1, nil)
	s.log = nil
	s.step(0, Jumped{})
	s.step(1, Tick{})
	s.want("clock jumped", "hand over")
	s.step(1, Lost{})
	s.leads(2, nil)
	s.want("write", "start 03:00 try 1")
	s.step(3, Jumped{}) // the end of the running occurrence is marked before the hand-over
	s.step(4, Ended{Result: Finished})
	s.want("clock jumped", "write", "ended 03:00 finished", "hand over")
}

func TestJ7AheadOfTheClockItStaysAndWarns(t *testing.T) {
	s := host(t, cronConfig(nil)).leads(600, nil)
	b := host(t, cronConfig(nil)).leads(0, s)
	b.step(1, Tick{})
	b.want("ahead 13:00", "wake 12:00", "wake 12:00")
	text, err := ResetDone(b.text, minute(2), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.text = text
	b.leads(60, nil).want("write", "start 04:00 try 1")
}

func TestJitterShiftsTheStartAndNotTheOccurrence(t *testing.T) {
	with := func(c *Config) { c.Jitter = 30 * time.Minute }
	s := host(t, cronConfig(with))
	if s.job.offset <= 0 || s.job.offset >= 30*time.Minute || s.job.offset != host(t, cronConfig(with)).job.offset {
		t.Fatalf("jitter %v", s.job.offset)
	}
	s.leads(-1, nil)
	s.step(s.job.offset.Minutes()-0.1, Tick{})
	s.step(s.job.offset.Minutes(), Tick{})
	wake := "wake " + base.Add(s.job.offset).Format("15:04")
	s.want("write", wake, wake, "write", "start 03:00 try 1")
}

func TestASpecThatChangesCountsFromNowOn(t *testing.T) {
	a := host(t, cronConfig(nil)).leads(1, nil)
	b := host(t, cronConfig(func(c *Config) { c.Spec = "* * * * *" }))
	b.step(30, Follows{Text: a.text})
	b.want("differs")
	b.leads(30, a).want("differs", "write", "changed", "missed 03:26 03:29", "start 03:30 try 1")
	if w, _ := Parse(b.text); w.Spec != "* * * * *" {
		t.Errorf("%s", b.text)
	}
}

func TestANeverAndAnEndlessJobWait(t *testing.T) {
	host(t, cronConfig(func(c *Config) { c.Spec = "0 0 30 2 *" })).leads(0, nil).want("write")
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	for _, c := range []Config{
		cronConfig(func(c *Config) { c.Late = time.Minute }),
		cronConfig(func(c *Config) { c.Missed = "some" }),
		cronConfig(func(c *Config) { c.Jitter = -1 }),
		cronConfig(func(c *Config) { c.Spec = "" }),
		cronConfig(func(c *Config) { c.Spec = "0 0\x00 * * *" }),
		cronConfig(func(c *Config) { c.Spec = long }),
		cronConfig(func(c *Config) { c.Zone = "Mars" }),
		{Kind: Key},
		{Kind: Series, Key: long},
		{Kind: Series, Key: "a\nb"},
		{Kind: Series, Key: "a\"b"},
		{Kind: Series, Key: "a\u2028b"},
		{Kind: Series, Key: "\xff"},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
