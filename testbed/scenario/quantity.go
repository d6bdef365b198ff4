package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/observe"
)

// quantity measures something at once, for a comparison with a limit.
type quantity func(w *world, of string, words []string) (x float64, saw string, rest []string, err error)

func quantities() map[string]quantity {
	return map[string]quantity{
		"overlap": overlapQuantity, "gap": gapQuantity, "takeovers": takeoversQuantity,
		"term-rises": termRises, "counted": countedQuantity, "memory": memoryQuantity,
		"pause": pauseQuantity,
	}
}

func (w *world) measure(q quantity, args []string) (string, error) {
	of, words := option(args[1:], "of")
	x, saw, rest, err := q(w, of, words)
	if err != nil {
		return "", err
	}
	if args[0] == "term-rises" {
		rest = []string{"0"}
	}
	l, err := limitOf(rest)
	if err != nil {
		return "", err
	}
	if !l.holds(x) {
		return saw, fmt.Errorf("want %s; instead: %s", l.text, saw)
	}
	return saw, nil
}

// settle polls the agents, so that their present state is known.
func (w *world) settle() {
	for _, h := range w.lab.Cluster.Hosts() {
		w.lab.Ask(h)
	}
}

// overlaps returns all times in which two led at once, by what agents reported or by what
// programs stamped.
func (w *world) overlaps(of string) ([]observe.OverlapSpan, error) {
	var all []observe.OverlapSpan
	w.lab.Look(func(e seen) { all = e.Overlaps(boottime.Now()) })
	spans, err := w.lab.Spans()
	if err != nil {
		return nil, err
	}
	all = append(all, observe.ProgramOverlaps(spans)...)
	return slices.DeleteFunc(all, func(o observe.OverlapSpan) bool { return of != "" && o.Election != of }), nil
}

// overlapQuantity is for how long two led at once, in total.
func overlapQuantity(w *world, of string, words []string) (float64, string, []string, error) {
	w.settle()
	all, err := w.overlaps(of)
	if err != nil {
		return 0, "", nil, err
	}
	var sum time.Duration
	for _, o := range all {
		sum += o.To.Sub(o.From)
	}
	return float64(sum), describeOverlaps(all), words, nil
}

func describeOverlaps(all []observe.OverlapSpan) string {
	if len(all) == 0 {
		return "never two at once"
	}
	var described []string
	for _, o := range all[:min(len(all), 5)] {
		described = append(described, fmt.Sprintf("%s and %s both led %s for %s, reported by %s", o.First, o.Second, o.Election, o.To.Sub(o.From), o.By))
	}
	return strings.Join(described, "; ")
}

// changes returns the takeovers since the mark, and apart from them the leaders that went on in
// a higher term.
func (w *world) changes(of string) (since, wentOn []observe.Takeover) {
	faults := w.lab.Faults()
	w.lab.Look(func(e seen) {
		for _, t := range e.Takeovers(faults) {
			switch {
			case t.At < w.marked || t.Election != electionName(of):
			case t.GoesOn:
				wentOn = append(wentOn, t)
			default:
				since = append(since, t)
			}
		}
	})
	return since, wentOn
}

// gapQuantity is the longest known time without a leader before a takeover since the mark. A
// killed leader counts as leading until its deadline.
func gapQuantity(w *world, of string, words []string) (float64, string, []string, error) {
	all, _ := w.changes(of)
	if len(all) == 0 {
		return 0, "", nil, errors.New("there was no takeover")
	}
	var longest time.Duration
	var described []string
	for _, t := range all {
		longest = max(longest, time.Duration(t.Gap))
		described = append(described, fmt.Sprintf("%s after %s: %s", t.After, t.Before, time.Duration(t.Gap).Round(100*time.Microsecond)))
	}
	return float64(longest), strings.Join(described, ", "), words, nil
}

func takeoversQuantity(w *world, of string, words []string) (float64, string, []string, error) {
	all, wentOn := w.changes(of)
	var described []string
	for _, t := range all {
		described = append(described, fmt.Sprintf("%s, term %d", t.After, t.Term))
	}
	if len(described) == 0 {
		described = []string{"none"}
	}
	for _, t := range wentOn {
		described = append(described, fmt.Sprintf("%s went on under term %d", t.After, t.Term))
	}
	return float64(len(all)), strings.Join(described, "; "), words, nil
}

// termRises counts the leaderships whose term is not above all earlier ones.
func termRises(w *world, of string, words []string) (float64, string, []string, error) {
	if len(words) != 0 {
		return 0, "", nil, errors.New("it takes no limit")
	}
	var all []observe.Takeover
	w.lab.Look(func(e seen) { all = e.Takeovers(nil) })
	highest, broken := map[string]uint64{}, 0
	var described []string
	for _, t := range all {
		if of != "" && t.Election != of {
			continue
		}
		if t.Term <= highest[t.Election] {
			broken++
		}
		highest[t.Election] = max(highest[t.Election], t.Term)
		described = append(described, fmt.Sprintf("%s %d", t.After, t.Term))
	}
	return float64(broken), "terms: " + strings.Join(described, ", "), nil, nil
}

// countedQuantity: counted METRIC [among HOST…] LIMIT. It is how much the metric rose since the
// mark on all hosts that run.
func countedQuantity(w *world, _ string, words []string) (float64, string, []string, error) {
	if len(words) == 0 {
		return 0, "", nil, errors.New("want the name of a counter, as in: counted doyen_selection_rounds_total <= 10")
	}
	now, err := w.sample()
	if err != nil {
		return 0, "", nil, err
	}
	var sum float64
	for key, x := range now {
		host, metric, _ := strings.Cut(key, " ")
		if metric == words[0] || strings.HasPrefix(metric, words[0]+"{") {
			before := w.counters[host+" "+metric]
			if x >= before { // otherwise x is from a later life
				x -= before
			}
			sum += x
		}
	}
	return sum, fmt.Sprintf("%s rose by %g since the mark", words[0], sum), words[1:], nil
}
