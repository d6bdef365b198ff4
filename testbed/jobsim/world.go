package jobsim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/doyen-election/doyen/internal/calendar"
	"github.com/doyen-election/doyen/internal/jobs"
	"github.com/doyen-election/doyen/internal/virtual"
)

const (
	hosts = 3
	lease = 2 * time.Second
	// occurrences is how many are due in a world before faults end.
	occurrences = 150
)

var epoch = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

type host struct {
	job     *jobs.Job // nil: its runner is dead
	life    int       // of its runner
	skew    time.Duration
	command int // number of the command that lives here; 0: none
}

// world is played in virtual time, one event after the other.
type world struct {
	virtual.Timeline[time.Duration, func()]

	r       *rand.Rand
	config  jobs.Config
	period  time.Duration
	jumps   bool
	hosts   [hosts]host
	calm    time.Duration // when faults end
	leader  int           // -1: none
	term    uint64
	settled string
	flight  string // a write that is not acknowledged
	leaving bool   // the leader gives its receipt once its job is idle
	cut     bool   // the leader is cut off: no answer reaches it
	number  int    // of the last command
	judge   judge
	trace   *strings.Builder
}

func newWorld(seed uint64, trace *strings.Builder) (*world, error) {
	w := &world{r: rand.New(rand.NewPCG(seed, 23)), leader: -1, trace: trace}
	steps := []int{1, 1, 1, 2, 5, 15}
	step := steps[w.r.IntN(len(steps))]
	w.period = time.Duration(step) * time.Minute
	w.config = jobs.Config{Name: fmt.Sprintf("job%d", seed), Kind: jobs.Cron, Spec: "* * * * *", Rerun: w.r.IntN(2) == 0,
		Missed: []jobs.Missed{jobs.Latest, jobs.All, jobs.None}[w.r.IntN(3)], Late: jobs.LeastLate + w.lasts(10*time.Minute)}
	if step > 1 {
		w.config.Spec = fmt.Sprintf("*/%d * * * *", step)
	}
	if w.r.IntN(4) == 0 {
		w.config.Jitter = w.lasts(w.period)
	}
	w.jumps = w.r.IntN(8) == 0
	w.calm = occurrences * w.period
	schedule, err := calendar.Parse(w.config.Spec, "")
	if err != nil {
		return nil, fmt.Errorf("set up the world: %w", err)
	}
	w.judge = judge{schedule: schedule, rerun: w.config.Rerun, starts: map[string]start{}, told: map[string]bool{}, alive: map[int]string{}}
	for i := range w.hosts {
		w.hosts[i].skew = w.lasts(2*time.Minute) - time.Minute
		if err := w.boot(i); err != nil {
			return nil, err
		}
	}
	w.after(0, w.elect)
	w.after(w.lasts(w.period), w.fault)
	return w, nil
}

// lasts draws a time below a bound.
func (w *world) lasts(below time.Duration) time.Duration {
	return time.Duration(w.r.Int64N(int64(below)))
}

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%12.3fs  %s\n", w.Now.Seconds(), fmt.Sprintf(format, args...))
	}
}

// boot starts the runner of a host.
func (w *world) boot(i int) error {
	job, err := jobs.New(w.config)
	if err != nil {
		return fmt.Errorf("boot host %d: %w", i, err)
	}
	h := &w.hosts[i]
	h.job, h.life = job, h.life+1
	return nil
}

func (w *world) clock(i int) time.Time { return epoch.Add(w.Now + w.hosts[i].skew) }

// step gives an event to the job of a host, and carries out the job's output.
func (w *world) step(i int, e jobs.Event) {
	h := &w.hosts[i]
	out := h.job.Step(w.clock(i), e)
	w.note("host %d, clock %s: %T%+v → %+v, writes %s", i, w.clock(i).Format("15:04:05"), e, e, out.Reports, out.Write)
	for _, r := range out.Reports {
		w.judge.report(r)
	}
	if out.Write != "" {
		w.flight = out.Write
		delay := w.lasts(20 * time.Millisecond)
		if w.r.IntN(20) == 0 {
			delay = w.lasts(5 * time.Second)
		}
		text := out.Write
		if w.r.IntN(20) == 0 { // a fault strikes before the answer
			w.inTerm(w.lasts(delay+time.Millisecond), w.strike)
		}
		w.inTerm(delay, func() {
			if w.flight == text {
				w.settled, w.flight = text, ""
				w.step(i, jobs.Written{Text: text})
			}
		})
	}
	if out.Start != nil {
		w.start(i, *out.Start)
	}
	if out.Exit != nil {
		w.judge.fail("host %d: a cron job exits with %d", i, *out.Exit)
	}
	if !out.Wake.IsZero() && w.leader == i {
		w.judge.waitsFor(out)
		wait := max(out.Wake.Sub(w.clock(i)), time.Millisecond)
		w.inTerm(wait, func() { w.step(i, jobs.Tick{}) })
		if w.r.IntN(3) == 0 { // a fault strikes close to the wake-up
			w.inTerm(max(wait-500*time.Millisecond+w.lasts(time.Second), 0), w.strike)
		}
	}
	if out.HandOver != "" {
		w.leaving = true
	}
	if w.leaving && !w.cut && w.leader == i && h.job != nil && h.job.Idle() {
		w.release(w.lasts(50*time.Millisecond), "the receipt")
	}
}

func (w *world) start(i int, s jobs.Start) {
	w.number++
	h, number := &w.hosts[i], w.number
	w.judge.start(w, i, s)
	w.note("host %d starts %s, try %d", i, s.Occurrence, s.Try)
	h.command = number
	w.judge.alive[number] = s.Occurrence
	takes := w.lasts(w.period / 2)
	if w.r.IntN(10) == 0 {
		takes = w.lasts(5 * w.period)
	}
	end := jobs.Ended{Result: jobs.Finished}
	switch w.r.IntN(6) {
	case 0:
		end = jobs.Ended{Result: jobs.Failed, Code: 1 + w.r.IntN(120)}
	case 1:
		end = jobs.Ended{Result: jobs.TimedOut, Code: 124}
	}
	w.after(takes, func() {
		if h.command == number {
			w.dead(i)
			w.step(i, end)
		}
	})
}

// dead is the end of the command on a host.
func (w *world) dead(i int) {
	delete(w.judge.alive, w.hosts[i].command)
	w.hosts[i].command = 0
}

// elect chooses a host whose runner is up, and lets it lead. An unacknowledged write takes effect or is lost.
func (w *world) elect() {
	if w.leader >= 0 {
		return
	}
	i := w.r.IntN(hosts)
	if w.hosts[i].job == nil {
		w.after(100*time.Millisecond, w.elect)
		return
	}
	w.term++
	w.leader, w.leaving = i, false
	w.settle()
	w.note("host %d leads in term %d", i, w.term)
	w.step(i, jobs.Leads{Term: w.term, Text: w.settled})
}

// settle decides whether the unacknowledged write takes effect.
func (w *world) settle() {
	if w.flight != "" && w.r.IntN(2) == 0 {
		w.settled = w.flight
		w.note("the write took effect")
	}
	w.flight = ""
}

// release ends the leadership, and has the next one begin after a time.
func (w *world) release(next time.Duration, why string) {
	i := w.leader
	w.note("host %d leads no more: %s", i, why)
	w.dead(i)
	w.leader, w.leaving, w.cut = -1, false, false
	if h := &w.hosts[i]; h.job != nil {
		w.step(i, jobs.Lost{})
	}
	w.after(next, w.elect)
}

func (w *world) after(d time.Duration, do func()) { w.Push(w.Now+d, do) }

// inTerm is like after, but does nothing if the term has ended or the leader is cut off by then.
func (w *world) inTerm(d time.Duration, do func()) {
	i, life, term := w.leader, 0, w.term
	if i >= 0 {
		life = w.hosts[i].life
	}
	w.after(d, func() {
		if i >= 0 && w.leader == i && !w.cut && w.hosts[i].life == life && w.term == term {
			do()
		}
	})
}

// play runs the world until it has healed for a time.
func (w *world) play() {
	end := w.calm + 10*time.Minute + 8*w.period
	if w.jumps {
		end += 2 * time.Hour // the word may have later occurrences as done
	}
	for w.Now <= end && w.judge.broken == "" {
		do, _, _ := w.Next(virtual.Never - 1) // there is always a next fault
		do()
	}
	w.judge.ends(w.settled, epoch.Add(w.calm))
}
