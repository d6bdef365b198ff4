package scenario

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// quantity measures something now, for a comparison with a limit.
type quantity struct {
	takes   string // the word that it takes before the limit; "": none
	measure func(w *world, of, word string) (x float64, saw string, err error)
}

func quantities() map[string]quantity {
	return map[string]quantity{
		"overlap": {"", overlapQuantity}, "gap": {"", gapQuantity}, "takeovers": {"", takeoversQuantity}, "term-rises": {"", termRises},
		"counted": {"the name of a counter, as in: counted doyen_selection_rounds_total <= 10", countedQuantity},
		"memory":  {"a host and a limit in MiB, as in: memory $l1 <= 48", memoryQuantity},
		"pause":   {"a program", pauseQuantity}, "starts": {"", startsQuantity}, "keys": {"", keysQuantity},
	}
}

func (w *world) measure(q quantity, args []string) (string, error) {
	of, words := option(args[1:], "of")
	word := ""
	if q.takes != "" {
		if len(words) == 0 {
			return "", errors.New("want " + q.takes)
		}
		word, words = words[0], words[1:]
	}
	if args[0] == "term-rises" {
		if len(words) != 0 {
			return "", errors.New("it takes no limit")
		}
		words = []string{"0"}
	}
	x, saw, err := q.measure(w, of, word)
	if err != nil {
		return "", err
	}
	l, err := limitOf(words)
	if err != nil {
		return "", err
	}
	if !l.holds(x) {
		return saw, fmt.Errorf("want %s; instead: %s", l.text, saw)
	}
	return saw, nil
}

// settle polls all agents once, so that the trackers know their present states and deadlines.
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

// overlapQuantity is the total time in which two led at once.
func overlapQuantity(w *world, of, _ string) (float64, string, error) {
	w.settle()
	all, err := w.overlaps(of)
	if err != nil {
		return 0, "", err
	}
	var sum time.Duration
	for _, o := range all {
		sum += o.To.Sub(o.From)
	}
	return float64(sum), describeOverlaps(all), nil
}

func describeOverlaps(all []observe.OverlapSpan) string {
	if len(all) == 0 {
		return "never two at once"
	}
	return strings.Join(each.Of(all[:min(len(all), 5)], func(o observe.OverlapSpan) string {
		return fmt.Sprintf("%s and %s both led %s for %s, reported by %s", o.First, o.Second, o.Election, o.To.Sub(o.From), o.By)
	}), "; ")
}

// changes returns the takeovers since the mark and, separately, the leaders that went on in a
// higher term.
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
func gapQuantity(w *world, of, _ string) (float64, string, error) {
	all, _ := w.changes(of)
	if len(all) == 0 {
		return 0, "", errors.New("there was no takeover")
	}
	var longest time.Duration
	var described []string
	for _, t := range all {
		longest = max(longest, time.Duration(t.Gap))
		described = append(described, fmt.Sprintf("%s after %s: %s", t.After, t.Before, time.Duration(t.Gap).Round(100*time.Microsecond)))
	}
	return float64(longest), strings.Join(described, ", "), nil
}

func takeoversQuantity(w *world, of, _ string) (float64, string, error) {
	all, wentOn := w.changes(of)
	described := each.Of(all, func(t observe.Takeover) string { return fmt.Sprintf("%s, term %d", t.After, t.Term) })
	if len(described) == 0 {
		described = []string{"none"}
	}
	for _, t := range wentOn {
		described = append(described, fmt.Sprintf("%s went on under term %d", t.After, t.Term))
	}
	return float64(len(all)), strings.Join(described, "; "), nil
}

// termRises counts the leaderships whose term is not above all earlier ones.
func termRises(w *world, of, _ string) (float64, string, error) {
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
	return float64(broken), "terms: " + strings.Join(described, ", "), nil
}

// countedQuantity: counted METRIC LIMIT. It is how much the metric rose since the mark, summed
// over all hosts that run.
func countedQuantity(w *world, _, word string) (float64, string, error) {
	now, err := w.sample()
	if err != nil {
		return 0, "", err
	}
	var sum float64
	for key, x := range now {
		host, metric, _ := strings.Cut(key, " ")
		if metric == word || strings.HasPrefix(metric, word+"{") {
			before := w.counters[host+" "+metric]
			if x >= before { // otherwise a later life of the agent counted again from 0
				x -= before
			}
			sum += x
		}
	}
	return sum, fmt.Sprintf("%s rose by %g since the mark", word, sum), nil
}

// memoryQuantity: memory HOST LIMIT. It is the largest resident memory, in MiB, of the agent's
// process since the mark.
func memoryQuantity(w *world, _, word string) (float64, string, error) {
	h, err := w.oneHost(word)
	if err != nil {
		return 0, "", err
	}
	var status procfs.ProcStatus
	p, err := procfs.NewProc(h.PID())
	if err == nil {
		status, err = p.NewStatus()
	}
	if err != nil {
		return 0, "", fmt.Errorf("read the memory of %s: %w", h.Name(), err)
	}
	mib := float64(status.VmHWM) / (1 << 20)
	return mib, fmt.Sprintf("%s had at most %.1f MiB", h.Name(), mib), nil
}

// forgetPeaks resets the largest memory that the kernel has noted for each agent.
func (w *world) forgetPeaks() {
	for _, h := range w.lab.Cluster.Hosts() {
		if pid := h.PID(); pid > 0 {
			_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // on an error the old peak stays
		}
	}
}

func (w *world) record() *observe.Recording {
	r := w.lab.Record(w.name)
	r.From, r.Wall, r.Steps, r.Failed = w.began, w.wall, w.steps, w.failure
	return r
}

// sample reads the counters of all hosts that run, by "HOST METRIC".
func (w *world) sample() (map[string]float64, error) {
	counters := map[string]float64{}
	for _, h := range w.lab.Cluster.Hosts() {
		if h.Status() != hosts.Running {
			continue
		}
		families, err := lab.ReadMetrics(w.ctx, h)
		if err != nil {
			return nil, err
		}
		for name, family := range families {
			for _, metric := range family.GetMetric() {
				counters[h.Name()+" "+written(name, metric)] = lab.Value(metric)
			}
		}
	}
	return counters, nil
}

// written returns a metric as scripts and /metrics write it: NAME{LABEL="VALUE",…}.
func written(name string, m *dto.Metric) string {
	labels := each.Of(m.GetLabel(), func(l *dto.LabelPair) string { return fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()) })
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}
