package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/doyen-election/doyen/internal/calendar"
)

// Missed selects which occurrences run if several are due and not too late (Config.Late).
type Missed string

const (
	Latest Missed = "last"
	All    Missed = "all"
	None   Missed = "none" // none that came due more than LeastLate before this leadership, or while another one ran
)

const (
	// LeastLate is the least value of Config.Late: clocks may differ by 60 s, and a change of leaders takes
	// time.
	LeastLate = 2 * time.Minute
	// DefaultLate is the value of Config.Late if nothing is configured.
	DefaultLate = 5 * time.Minute

	// mostPassed bounds how many occurrences one write passes over. For years of them, several writes follow.
	mostPassed = 10000

	ahead = time.Hour // J7: how far the word's newest occurrence may be ahead of the clock
)

// The exit codes of a job, besides those of its command.
const (
	ExitUsage   = 64 // the word is not this job's, or elections have no words
	ExitRunning = 75 // another host runs it
	ExitUnknown = 76 // nobody knows how far it got: its starter died, or it was stopped
	ExitSkipped = 77 // a higher key has ended or was passed over
)

// Config is a job as one host is configured to run it. If hosts differ, the leader's Config applies.
type Config struct {
	Name       string // the election's name
	Kind       Kind
	Spec, Zone string        // Cron
	Key        string        // Series: the text after the slash. Key: not used, the key is Name
	Late       time.Duration // Cron: how late an occurrence may start; 0 is DefaultLate
	Missed     Missed        // Cron; "" is Latest
	Jitter     time.Duration // Cron: starts are later by a part of it, which depends on Name
	Rerun      bool          // start an occurrence with an unknown end again: --on-death rerun, --retry
	NoWait     bool          // once: exit if another host runs it
	AllowOlder bool          // Series: exit with 0 for a key that was skipped
}

// Job decides what one host does for a job. Its methods are called from one goroutine.
type Job struct {
	config   Config
	schedule calendar.Schedule
	offset   time.Duration // the part of Jitter by which this job starts later

	term     uint64 // 0: this host does not lead
	word     Word   // the word as last acknowledged in this term
	text     string
	pending  *draft // the write in progress. Invariant: one write at a time
	running  *Run   // the occurrence whose command may run here. Invariant (J2): its claim has been acknowledged
	undone   bool   // the occurrence claimed last was not started
	kept     *kept
	ended    *End      // how the running occurrence ended, until the write of this end is acknowledged
	ready    time.Time // if Config.Missed is None, what was due before this time does not run
	stopping bool      // claims nothing until the leadership ends
	handOver string
	warned   bool
}

// kept is an end that was not written before the leadership ended. If this host leads next, it writes the end
// then.
type kept struct {
	run Run
	end End
}

// draft is a word to write, and what follows once the write is acknowledged.
type draft struct {
	word    Word
	text    string
	claims  bool
	reports []Report
	exit    *int
	wake    time.Time
}

// New checks the configuration.
func New(c Config) (*Job, error) {
	c.Late, c.Missed = cmp.Or(c.Late, DefaultLate), cmp.Or(c.Missed, Latest)
	if c.Kind == Key {
		c.Key = c.Name
	}
	if c.Zone == "UTC" {
		c.Zone = ""
	}
	j := &Job{config: c}
	var err error
	switch {
	case c.Kind != Cron:
		err = check("key", c.Key)
	case c.Late < LeastLate:
		err = fmt.Errorf("late: %v is less than %v, and clocks may differ by a minute", c.Late, LeastLate)
	case !slices.Contains([]Missed{Latest, All, None}, c.Missed):
		err = fmt.Errorf("missed: %q is not last, all or none", c.Missed)
	case c.Jitter < 0:
		err = errors.New("jitter: it can't be negative")
	default:
		if err = check("spec", c.Spec); err == nil {
			j.schedule, err = calendar.Parse(c.Spec, c.Zone)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("set up the job %s: %w", c.Name, err)
	}
	if c.Jitter > 0 {
		h := fnv.New64a()
		h.Write([]byte(c.Name))
		j.offset = time.Duration(h.Sum64() % uint64(c.Jitter)).Truncate(time.Second)
	}
	return j, nil
}

// Idle reports whether nothing runs here and no write is in progress, so that the receipt may be given.
func (j *Job) Idle() bool { return j.running == nil && j.pending == nil }

// Step takes an event at a time of the host's wall clock, and returns what to do.
func (j *Job) Step(now time.Time, e Event) Output {
	now = now.UTC().Truncate(time.Second)
	var out Output
	switch e := e.(type) {
	case Lost:
		k := j.kept
		if j.running != nil && j.ended != nil && j.ended.Result != Stopped { // nobody knows how far a stopped command got
			k = &kept{*j.running, *j.ended}
		}
		*j = Job{config: j.config, schedule: j.schedule, offset: j.offset, kept: k}
	case Follows:
		j.follows(e.Text, &out)
	case Leads:
		j.leads(now, e, &out)
	case Written:
		j.acknowledge(e.Text, &out)
	case Ended:
		if r := j.running; r != nil && j.ended == nil {
			j.ended, j.ready = &End{At: r.At, Try: r.Try, Result: e.Result, Code: e.Code, When: now}, now
			j.stopping = j.stopping || e.Result == Stopped
		}
	case NotStarted:
		j.undone, j.running = j.running != nil, nil
	case Stopping:
		j.stopping = true
	case Jumped:
		if j.config.Kind == Cron && j.term > 0 && !j.stopping { // J7
			j.stopping, j.handOver = true, "the wall clock jumped by a minute or more"
			out.Reports = append(out.Reports, Report{What: ClockJumped})
		}
	}
	if j.term > 0 && out.Exit == nil && out.Start == nil {
		j.plan(now, &out)
	}
	return out
}

// follows reads the word while another host leads.
func (j *Job) follows(text string, out *Output) {
	w, refused := j.read(text, out)
	switch {
	case refused:
	case j.config.Kind == Cron:
		j.compare(w, out)
	default:
		if code, ok := j.settled(w); ok {
			out.Exit = &code
		} else if j.config.NoWait {
			out.Exit = new(ExitRunning)
		}
	}
}

// leads handles the word of a term that this host leads. If the word equals the draft, the draft's write counts
// as acknowledged.
func (j *Job) leads(now time.Time, e Leads, out *Output) {
	w, refused := j.read(e.Text, out)
	if refused {
		j.pending = nil
		return
	}
	if j.term == 0 {
		if k := j.kept; k != nil && w.Run != nil && w.Run.At == k.run.At && w.Run.Try == k.run.Try && w.Run.Term == k.run.Term {
			j.running, j.ended = w.Run, &k.end
		}
		j.kept = nil
		j.ready = now.Add(-LeastLate)
		j.compare(w, out)
		// The former leader may have died before it reported what it had written.
		if w.Last != nil && (j.config.Kind == Cron || w.Last.At == j.config.Key) {
			out.Reports = append(out.Reports, w.Last.report(true))
		}
		if w.Missed != nil {
			out.Reports = append(out.Reports, w.Missed.report(true))
		}
	}
	j.term = e.Term
	if !j.acknowledge(e.Text, out) {
		j.word, j.text, j.pending = w, e.Text, nil
	}
}

// read parses a word and refuses one that is not this job's.
func (j *Job) read(text string, out *Output) (w Word, refused bool) {
	w, err := Parse(text)
	if err == nil && text != "" && w.Kind != j.config.Kind {
		err = fmt.Errorf("the election's word is a job of kind %s, and this one is of kind %s; use another name", w.Kind, j.config.Kind)
	}
	if err != nil {
		out.Exit = new(ExitUsage)
		out.Reports = append(out.Reports, Report{What: Refused, Detail: err.Error()})
	}
	return w, err != nil
}

// compare reports a spec or zone that differs from this host's.
func (j *Job) compare(w Word, out *Output) {
	if w.Kind == Cron && (w.Spec != j.config.Spec || w.Zone != j.config.Zone) {
		out.Reports = append(out.Reports, Report{What: Differs, Detail: fmt.Sprintf("the job's spec was %q in %q, and this host has %q in %q", w.Spec, w.Zone, j.config.Spec, j.config.Zone)})
	}
}

// acknowledge takes over the draft if text equals it, and reports whether it does.
func (j *Job) acknowledge(text string, out *Output) bool {
	d := j.pending
	if d == nil || d.text != text {
		return false
	}
	j.word, j.text, j.pending = d.word, text, nil
	if j.ended != nil {
		j.running, j.ended = nil, nil
	}
	out.Reports = append(out.Reports, d.reports...)
	out.Exit = d.exit
	if d.claims { // J2
		j.running = d.word.Run
		out.Start = j.start(*j.running)
	}
	return true
}

// plan finds what to write, or what to wait for.
func (j *Job) plan(now time.Time, out *Output) {
	if j.pending != nil || j.running != nil && j.ended == nil {
		return
	}
	d := &draft{word: j.word}
	if j.ended != nil {
		j.end(d)
	}
	if j.undone { // the claim must go, or the next leader would not know whether the occurrence ran
		j.undone, d.word.Run = false, nil
	}
	switch {
	case d.exit != nil || j.stopping:
	case j.config.Kind == Cron:
		j.cron(now, d)
	default:
		j.once(now, d)
	}
	if d.word.Version > 0 && d.word.Text() != j.text {
		if d.word.Missed == j.word.Missed {
			d.word.Missed = nil // the former span has been reported
		}
		d.text = d.word.Text()
		j.pending, out.Write = d, d.text
		return
	}
	out.Reports = append(out.Reports, d.reports...)
	out.Exit, out.Wake = d.exit, d.wake
	out.HandOver, j.handOver = j.handOver, ""
}

// end marks the end of what ran here. With Rerun the claim of a stopped occurrence stays, so that it runs
// again. For once a stopped claim always stays: the next call decides whether it runs again.
func (j *Job) end(d *draft) {
	e, w := *j.ended, &d.word
	w.Last = &e
	w.count(e.Result, 1)
	d.reports = append(d.reports, e.report(false))
	once := j.config.Kind != Cron
	if e.Result == Stopped && (j.config.Rerun || once) {
		return
	}
	w.Run = nil
	if once && e.Result != Finished {
		d.exit = &e.Code
		return
	}
	if once {
		d.exit = new(int)
		if w.Done != "" && w.Done != e.At && w.Unknown != w.Done {
			w.Ends = append(slices.Clone(w.Ends), w.Done)
		}
		w.Unknown = ""
	}
	w.settle(e.At)
}
