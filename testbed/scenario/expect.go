package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/lab"
)

const (
	usualWithin = 10 * time.Second
	maxWithin   = time.Hour
)

// expectCommand: expect QUANTITY [of ELECTION] LIMIT, or expect CONDITION [of ELECTION] [within
// TIME]. The time counts from the last thing that was done to the hosts.
func expectCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	if q, ok := quantities()[args[0]]; ok {
		return w.measure(q, args)
	}
	within, words, err := duration(args, "within", 0)
	if err != nil {
		return "", err
	}
	if within > maxWithin {
		return "", fmt.Errorf("within %s: an hour is the most", within)
	}
	c, err := w.condition(words)
	if err != nil {
		return "", err
	}
	if within == 0 { // it must hold now, as far as is known
		v := c.judge()
		if !v.holds {
			return v.saw, errors.New("instead: " + v.saw)
		}
		return v.saw, nil
	}
	return w.await(c, w.acted, within)
}

// holdCommand: hold TIME CONDITION [of ELECTION].
func holdCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	long, err := timeOf(args[0])
	if err != nil {
		return "", err
	}
	c, err := w.condition(args[1:])
	if err != nil {
		return "", err
	}
	saw, err := w.hold(c, long)
	w.acted = boottime.Now() // the next expectation counts from here
	return saw, err
}

// leaderCommand: leader VARIABLE [among HOST…] [of ELECTION] [within TIME].
func leaderCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	return w.choice(ts, args, func(leader string, _ []string) string { return leader })
}

// followerCommand: follower VARIABLE…. Each variable gets a different host that follows; hosts
// with a vote come first.
func followerCommand(w *world, ts *testscript.TestScript, args []string) (string, error) {
	return w.choice(ts, args, func(leader string, taken []string) string {
		for _, name := range w.running() {
			if name != leader && !slices.Contains(taken, name) {
				return name
			}
		}
		return ""
	})
}

// choice waits until the hosts agree, and then sets the variables.
func (w *world) choice(ts *testscript.TestScript, args []string, choose func(leader string, taken []string) string) (string, error) {
	within, words, err := duration(args, "within", usualWithin)
	if err != nil {
		return "", err
	}
	among := slices.IndexFunc(words, func(word string) bool { return word == "among" || word == "of" })
	if among < 0 {
		among = len(words)
	}
	if among == 0 {
		return "", errors.New("want the name of a variable")
	}
	c, err := w.condition(append([]string{"agree"}, words[among:]...))
	if err != nil {
		return "", err
	}
	from := boottime.Now()
	if _, err := w.await(c, from, within); err != nil {
		return "", err
	}
	of, _ := option(words, "of")
	var taken, chosen []string
	for _, variable := range words[:among] {
		leader := ""
		w.lab.Look(func(e seen) { leader = e.Of(electionName(of)).Leader() })
		name := choose(leader, taken)
		if name == "" {
			return "", fmt.Errorf("there is none for $%s", variable)
		}
		taken = append(taken, name)
		chosen = append(chosen, variable+" is "+name)
		ts.Setenv(variable, name)
	}
	return strings.Join(chosen, ", "), nil
}

func electionName(of string) string {
	return cmp.Or(of, string(election.Default))
}

// markCommand restarts the counting of takeovers, gaps, counters and memory.
func markCommand(w *world, _ *testscript.TestScript, _ []string) (string, error) {
	w.marked = boottime.Now()
	counters, err := w.sample()
	if err != nil {
		return "", err
	}
	w.counters = counters
	w.forgetPeaks()
	return "", nil
}

func showCommand(w *world, ts *testscript.TestScript, _ []string) (string, error) {
	ts.Logf("%s", w.lab.Account(0))
	return "", nil
}

// limit is the limit of a quantity, such as: 0, = 3, <= 150ms, >= 1.
type limit struct {
	compare func(x, limit float64) bool
	number  float64
	text    string
}

var comparisons = map[string]func(x, limit float64) bool{
	"=":  func(x, limit float64) bool { return x == limit },
	"<=": func(x, limit float64) bool { return x <= limit },
	">=": func(x, limit float64) bool { return x >= limit },
	"<":  func(x, limit float64) bool { return x < limit },
	">":  func(x, limit float64) bool { return x > limit },
}

func limitOf(words []string) (limit, error) {
	l := limit{compare: comparisons["="], text: strings.Join(words, " ")}
	if len(words) == 2 {
		l.compare, words = comparisons[words[0]], words[1:]
	}
	if len(words) != 1 || l.compare == nil {
		return l, fmt.Errorf("%q: want a limit such as 0, <= 150ms or >= 2", l.text)
	}
	if d, err := time.ParseDuration(words[0]); err == nil {
		l.number = float64(d)
		return l, nil
	}
	n, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		return l, fmt.Errorf("%q: want a number or a time", words[0])
	}
	l.number = n
	return l, nil
}

func (l limit) holds(x float64) bool { return l.compare(x, l.number) }

// verdict is the result of a condition: whether it holds, since when by the agents' own stamps
// (0: unknown), and what was seen.
type verdict struct {
	holds bool
	since election.Instant
	saw   string
}

type condition struct {
	judge func() verdict
	// asks is true if nothing reports when the condition changes: then it is checked at intervals.
	asks bool
}

const askEvery = 20 * time.Millisecond

// await waits until the condition holds. It is an error if the condition began to hold after
// the deadline.
func (w *world) await(c condition, from election.Instant, within time.Duration) (string, error) {
	deadline := from.Add(within)
	v, over, err := w.judge(c, deadline.Sub(boottime.Now())+deliverySlack, true)
	switch {
	case err != nil:
		return v.saw, err
	case over:
		return v.saw, fmt.Errorf("not within %s; instead: %s", within, v.saw)
	case v.since > deadline:
		return v.saw, fmt.Errorf("it came %s late, %s after the fault: %s", v.since.Sub(deadline).Round(time.Millisecond), v.since.Sub(from).Round(time.Millisecond), v.saw)
	}
	return fmt.Sprintf("%s, after %s", v.saw, max(v.since.Sub(from), 0).Round(100*time.Microsecond)), nil
}

// hold demands that the condition holds for the whole time.
func (w *world) hold(c condition, long time.Duration) (string, error) {
	began := boottime.Now()
	v, over, err := w.judge(c, long, false)
	if err == nil && !over {
		err = fmt.Errorf("it ended after %s: %s", boottime.Now().Sub(began).Round(time.Millisecond), v.saw)
	}
	return v.saw, err
}

// judge judges the condition again and again: until it holds or, if holds is false, until it does not. It
// returns the last verdict. over is true if the limit passed before that.
func (w *world) judge(c condition, limit time.Duration, holds bool) (v verdict, over bool, err error) {
	every := time.Hour
	if c.asks {
		every = askEvery
	}
	err = w.lab.Await(w.ctx, limit, every, "a condition", func() bool {
		v = c.judge()
		v.since = cmp.Or(v.since, boottime.Now())
		return v.holds == holds
	})
	if errors.Is(err, lab.ErrLate) {
		return v, true, nil
	}
	return v, false, wrap.Error(err, "interrupted; so far: %s", v.saw)
}
