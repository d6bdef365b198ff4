package report

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/bench"
	"github.com/doyen-election/doyen/testbed/observe"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

//go:embed page.html style.css
var files embed.FS

const (
	maxDrawn = 4 // elections of a recording that are drawn
	maxZooms = 6 // takeovers that are drawn enlarged
)

// Page is what a report shows. Each part may be missing.
type Page struct {
	Title     string
	Facts     []string // a line each, under the title
	Recording *observe.Recording
	Bench     *bench.Report
	Before    *bench.Report // to compare Bench with
}

func Write(w io.Writer, p Page) error {
	v, err := p.view()
	if err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(template.FuncMap{"orElse": orElse, "since": election.Instant.Sub,
		"seconds": func(d any) string { return seconds(time.Duration(reflect.ValueOf(d).Int())) }}).ParseFS(files, "page.html")
	if err != nil {
		return fmt.Errorf("read the report's template: %w", err)
	}
	if err := t.Execute(w, v); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func WriteFile(path string, p Page) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return errors.Join(Write(file, p), file.Close())
}

type view struct {
	Page
	Style     template.CSS
	Outcome   string // passed or failed, of a recording
	Cards     []card
	Elections []diagram
	Omitted   int // elections that are not drawn
	Zooms     []diagram
	Takeovers []observe.Takeover
	Steps     []observe.Step
	Counts    *countTable
	Charts    []drawn
	Figures   []bench.Row
	Compared  string // Bench and Before, as a table
}

// card is one number in the head of the page.
type card struct{ Number, What, Class string }

type drawn struct{ SVG template.HTML }

type diagram struct {
	spacetime.Diagram
	HTML template.HTML
}

func (p Page) view() (view, error) {
	v := view{Page: p}
	own, err := files.ReadFile("style.css")
	if err != nil {
		return view{}, fmt.Errorf("read the report's style: %w", err)
	}
	lanes, err := spacetime.Style()
	if err != nil {
		return view{}, err
	}
	v.Style = template.CSS(variables()+"\n"+string(own)) + lanes
	if p.Recording != nil {
		if err := v.record(p.Recording); err != nil {
			return view{}, err
		}
	}
	if p.Bench != nil {
		if err := v.measure(*p.Bench); err != nil {
			return view{}, err
		}
		if p.Before != nil {
			v.Compared = p.Bench.Table(p.Before)
		}
	}
	return v, nil
}

func drawings(all []spacetime.Diagram) (done []diagram, err error) {
	for _, d := range all {
		html, err := spacetime.Fragment(d)
		if err != nil {
			return nil, err
		}
		done = append(done, diagram{d, html})
	}
	return done, nil
}

// record adds what a recording tells to the view.
func (v *view) record(r *observe.Recording) (err error) {
	names := elections(r)
	v.Omitted = max(0, len(names)-maxDrawn)
	var whole, near []spacetime.Diagram
	for _, name := range names[:len(names)-v.Omitted] {
		whole = append(whole, drawElection(r, name, r.From, r.To))
	}
	for _, t := range r.Takeovers {
		if t.Took > 0 && len(near) < maxZooms {
			near = append(near, zoom(r, t))
		}
	}
	if v.Elections, err = drawings(whole); err != nil {
		return err
	}
	if v.Zooms, err = drawings(near); err != nil {
		return err
	}
	v.Outcome = "passed"
	if r.Failed != "" {
		v.Outcome = "failed"
	}
	v.Cards, v.Takeovers, v.Steps, v.Counts = cards(r), first(r.Takeovers), first(r.Steps), countMessages(r)
	return v.chart(takeoverCharts(r))
}

// zoom draws one takeover enlarged.
func zoom(r *observe.Recording, t observe.Takeover) spacetime.Diagram {
	fault := t.At - election.Instant(t.Took)
	around := max(election.Instant(t.Took)/8, 2_000_000)
	z := drawElection(r, t.Election, max(r.From, fault-around), min(r.To, t.At+2*around))
	z.Title = fmt.Sprintf("%s: %s → %s, %s after %s", t.Election, orElse("nobody", t.Before), t.After, seconds(time.Duration(t.Took)), t.Cause)
	return z
}

func (v *view) chart(all []chart) error {
	for _, c := range all {
		svg, err := c.draw()
		if err != nil {
			return err
		}
		v.Charts = append(v.Charts, drawn{embedded(svg, c.title)})
	}
	return nil
}

func (v *view) measure(r bench.Report) error {
	v.Figures = r.Rows(nil)
	return v.chart(charts(r))
}
