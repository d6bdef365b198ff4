package report

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

func written(t *testing.T, p Page) string {
	t.Helper()
	var page strings.Builder
	if err := Write(&page, p); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

func whole() Page {
	return Page{Title: "All <of> it", Facts: []string{"a fact & more"}, Recording: example()}
}

func TestThePageShowsEverythingAndEscapesIt(t *testing.T) {
	page := written(t, whole())
	for what, want := range map[string]string{
		"the title": "All &lt;of&gt; it", "a fact": "a fact &amp; more", "the scenario": "leader-cut-off &lt;silently&gt;", "a host": "gamma&lt;&amp;&gt;",
		"that it failed": `class="outcome failed"`, "why": "logs: &lt;kept&gt;", "a leader": `class="claim row0"`, "a follower": "follows alpha in term 1",
		"electing": "knows no leader and elects one", "no quorum": "reaches no majority", "idle": "is idle", "down": `class="stop"`, "a crash": "⚡ crash",
		"a cut": "⚡ cut, both ways: beta and alpha, gamma&lt;&amp;&gt;", "its end": "cut ends", "a full disk": "⚡ disk, full", "no leader": "nobody leads for 1.105 s",
		"an overlap": "✖ two leaders: beta and alpha both led, as agents reported, for 50.0 ms", "a program": "program p1 acts in term 2", "a takeover": `<td>crash</td><td class="n">1.105 s</td>`,
		"a step": "expect one-leader among rest", "what it saw": "beta, after 1.105s", "no vote": "no vote",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is missing: no %q", what, want)
		}
	}
	for _, bad := range []string{"<script", "gamma<&>", "http-equiv", "src=", "href=", "@import", "NaN", "+Inf", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, address := range regexp.MustCompile(`https?://[^"]*`).FindAllString(page, -1) {
		if !strings.HasPrefix(address, "http://www.w3.org/") { // SVG's names contain such addresses, but no browser fetches them
			t.Errorf("the page names %s", address)
		}
	}
}

func TestEqualInputGivesAnEqualPage(t *testing.T) {
	if first := written(t, whole()); first != written(t, whole()) {
		t.Error("two pages of the same differ")
	}
}

func TestARecordingMayBeEmpty(t *testing.T) {
	if page := written(t, Page{Title: "x", Recording: &observe.Recording{}}); !strings.HasSuffix(page, "</html>\n") {
		t.Errorf("the page ends in %q", page[max(0, len(page)-40):])
	}
}

func TestEveryDrawingIsWellFormed(t *testing.T) {
	page := written(t, whole())
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(drawings) < 3 {
		t.Fatalf("%d drawings", len(drawings))
	}
	for i, svg := range drawings {
		wellFormed(t, i, svg)
	}
}

func wellFormed(t *testing.T, name any, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(strings.ReplaceAll(text, " hidden>", ">")))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("%v: %v\n%.300s", name, err, text)
			return
		}
	}
}

// texts returns the texts beside the lane of a host, or beside none.
func texts(d spacetime.Diagram, lane int) (all []string) {
	for _, m := range d.Marks {
		if m.Lane == lane {
			all = append(all, m.Text)
		}
	}
	return all
}

func TestOfThousandsOfChangesTheLeadersRemain(t *testing.T) {
	h := observe.HostRecord{Name: "alpha"}
	for i := range 20_000 {
		state := "electing"
		if i%2 == 0 {
			state = "idle"
		}
		h.Spans = append(h.Spans, observe.StateSpan{Election: "default", State: state, From: at(time.Duration(i) * ms), To: at(time.Duration(i+1) * ms)})
	}
	h.Spans[9999].State = "leading"
	r := &observe.Recording{From: start, To: at(20_000 * ms), Hosts: []observe.HostRecord{h}}
	d := drawElection(r, "default")
	if all := texts(d, 0); len(all) != 1 || !strings.HasPrefix(all[0], "leads") || len(d.Bars) != 1 {
		t.Errorf("%q", all)
	}
}

func TestOfThousandsOfLeadershipsTheNewestAndEachOverlapRemain(t *testing.T) {
	h := observe.HostRecord{Name: "alpha"}
	for i := range 3 * maxMarks {
		h.Spans = append(h.Spans, observe.StateSpan{Election: "default", State: "leading", Term: uint64(i), From: at(time.Duration(i) * ms), To: at(time.Duration(i+1) * ms)})
	}
	r := &observe.Recording{From: start, To: at(3 * maxMarks * ms), Hosts: []observe.HostRecord{h}}
	if d := drawElection(r, "default"); d.From != 2*maxMarks*ms || len(d.Facts) != 1 {
		t.Errorf("drawn from %v on: %q", d.From, d.Facts)
	}
	r.Overlaps = []observe.OverlapSpan{{Election: "default", From: at(9 * ms), To: at(10 * ms)}}
	if d := drawElection(r, "default"); d.From != 9*ms {
		t.Errorf("drawn from %v on, and the overlap was at 9 ms", d.From)
	}
}

func TestElectionsAreOrderedByWhatHappened(t *testing.T) {
	r := example()
	r.Hosts[0].Spans = append(r.Hosts[0].Spans, observe.StateSpan{Election: "cron", State: "idle", From: r.From, To: r.To})
	if got := elections(r); !slices.Equal(got, []string{"default", "cron"}) {
		t.Errorf("%q", got)
	}
}

// A frozen leader reports until it is thawed that it leads. It is drawn as a leader only until its
// lease ends, not beside its successor.
func TestAFrozenLeaderIsDrawnToTheEndOfItsLease(t *testing.T) {
	span := func(state string, term uint64, from, to time.Duration) observe.StateSpan {
		return observe.StateSpan{Election: "default", State: state, Term: term, From: at(from), To: at(to)}
	}
	r := &observe.Recording{From: start, To: at(4000 * ms), Hosts: []observe.HostRecord{
		{Name: "alpha", Spans: []observe.StateSpan{span("leading", 1, 0, 3000*ms), span("following", 2, 3000*ms, 4000*ms)}},
		{Name: "beta", Spans: []observe.StateSpan{span("following", 1, 0, 2100*ms), span("leading", 2, 2100*ms, 4000*ms)}},
	}, Takeovers: []observe.Takeover{{Election: "default", Before: "alpha", After: "beta", Term: 2, At: at(2100 * ms), Gap: int64(100 * ms)}}}
	d := drawElection(r, "default")
	if b := d.Bars[0]; b.Lane != 0 || b.To != 2000*ms {
		t.Errorf("%+v", b)
	}
	if got, want := texts(d, 0), []string{"leads in term 1", "reports nothing, and its lease has expired", "follows  in term 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := texts(d, -1); !slices.Equal(got, []string{"nobody leads for 100.0 ms"}) {
		t.Errorf("%q", got)
	}
}
