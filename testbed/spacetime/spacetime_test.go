package spacetime

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// example has one of each thing that can be drawn.
func example() Diagram {
	lead := func(lane int, from, to, lease time.Duration) Bar {
		return Bar{Span: Span{Lane: lane, From: from, To: to, Text: "leads"}, Label: "T4", Lease: lease}
	}
	acts := lead(0, 2*ms, 30*ms, 40*ms)
	acts.Acts = true
	return Diagram{
		Title: "Two <leaders> & more", Facts: []string{"a fact"}, Command: `simulate --shrunk "faults=none"`,
		Lanes: []string{"p0", "p1", "p<2>"}, To: 50 * ms,
		Lives:  []Span{{Lane: 0, To: 30 * ms, Text: "p0"}, {Lane: 1, From: ms, To: Never}, {Lane: 2, To: 50 * ms}},
		Pauses: []Span{{Lane: 2, From: 5 * ms, To: 9 * ms}},
		Bars:   []Bar{lead(0, 2*ms, 30*ms, 40*ms), acts, lead(1, 35*ms, 50*ms, 90*ms)},
		Arrows: []Arrow{
			{From: 0, To: 1, Sent: 3 * ms, Came: 4 * ms, Text: "Vote Request", Detail: "<script>alert(1)</script>"},
			{From: 0, To: 2, Sent: 3 * ms, Came: 3 * ms, Text: "Vote Request", Lost: true},
			{From: 2, To: 0, Sent: 49 * ms, Came: Never, Text: "Vote Grant"},
			{From: 0, To: 1, Sent: 20 * ms, Came: 21 * ms, Text: "Heartbeat", Quiet: true},
		},
		Marks: []Mark{
			{Lane: -1, At: 30 * ms, Kind: Fault, Text: "crash"}, {Lane: 0, At: 30 * ms, Kind: Text, Text: "STOPS"},
			{Lane: 1, At: 35 * ms, Kind: Leader, Text: "LEADS"}, {Lane: 2, At: 5 * ms, Kind: Note, Text: "PAUSED"},
			{Lane: -1, At: 35 * ms, Kind: Violation, Text: "G1: two"},
		},
	}
}

func drawn(t *testing.T, d Diagram) string {
	t.Helper()
	var page strings.Builder
	if err := Write(&page, d); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

func TestThePageShowsEachThingAndEscapesEachText(t *testing.T) {
	page := drawn(t, example())
	for what, want := range map[string]string{
		"the title": "Two &lt;leaders&gt; &amp; more", "a lane": "p&lt;2&gt;", "a fact": "a fact", "the command": "faults=none",
		"a lost message": `class="msg lost"`, "one under way": `class="msg open"`, "a heartbeat": `class="msg quiet"`,
		"messages in one line": "Vote Request to p1, p&lt;2&gt; (lost)", "a pause": `class="pause"`, "a leadership": `class="claim row0"`,
		"a program that acts": `class="acts"`, "what is left of a lease": `class="rest"`, "the end of a lease": `class="lease"`,
		"a term": ">T4<", "a violation": "✖ G1: two", "a fault": "⚡ crash", "a start": `class="start"`, "a stop": `class="stop"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is missing: no %q", what, want)
		}
	}
	for _, bad := range []string{"<script", "p<2>", "http://", "https://", "NaN", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestTheDrawingIsWellFormed(t *testing.T) {
	g := newDrawing(example())
	g.draw()
	decoder := xml.NewDecoder(strings.NewReader("<svg>" + string(g.HTML()) + "</svg>"))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTimeKeepsItsOrderAndLinesDoNotOverlap(t *testing.T) {
	g := newDrawing(example())
	last := -1.0
	for at := -ms; at <= 60*ms; at += ms / 4 {
		if y := g.axis.y(at); y < last {
			t.Fatalf("%v is drawn above what came before", at)
		} else {
			last = y
		}
	}
	for i := 1; i < len(g.axis.rows); i++ {
		if g.axis.rows[i]-g.axis.rows[i-1] < lineHeight-0.01 {
			t.Errorf("lines %d and %d overlap", i-1, i)
		}
		if g.axis.rows[i] < g.axis.y(g.lines[i].At)-0.01 {
			t.Errorf("line %d stands above its time", i)
		}
	}
}

func TestWhatIsOutsideTheTimeIsLeftOut(t *testing.T) {
	d := example()
	d.From, d.To = 10*ms, 25*ms
	page := drawn(t, d)
	for _, gone := range []string{"Vote Request", "PAUSED", "crash", "✖ G1", "p0 starts at"} {
		if strings.Contains(page, gone) {
			t.Errorf("%q is still there", gone)
		}
	}
	if !strings.Contains(page, "Heartbeat") || !strings.Contains(page, `class="claim row0"`) {
		t.Error("what touches the time is gone")
	}
}

func TestAnEmptyDiagramIsAPage(t *testing.T) {
	if page := drawn(t, Diagram{}); !strings.Contains(page, "</svg>") {
		t.Error(page)
	}
}
