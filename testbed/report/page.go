// Package report draws what the testbed saw in one run as a page: who led when on which host,
// the faults, how long takeovers took, and what a script's steps saw.
//
// The page is one HTML file. It needs nothing from the network and runs no script. It is
// readable in light and dark, on paper and without colour: shapes and words say the same. Every
// text in it is escaped. Equal input gives an equal page.
//
// The package draws what a recording says, and judges nothing. If a diagram would have too many
// marks, only the newest leaders and faults stay, and all overlaps.
package report

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/doyen-election/doyen/testbed/observe"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

//go:embed page.html style.css
var files embed.FS

const (
	maxDrawn = 4   // elections of a recording that are drawn
	maxRows  = 200 // of a table, so that a page about hours of faults can still be read
)

// Page is what a report shows.
type Page struct {
	Title     string
	Facts     []string // a line each, under the title
	Recording *observe.Recording
}

func Write(w io.Writer, p Page) error {
	v, err := p.view()
	if err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(template.FuncMap{"orElse": func(word, name string) string { return cmp.Or(name, word) },
		"since": election.Instant.Sub, "seconds": func(d any) string { return seconds(time.Duration(reflect.ValueOf(d).Int())) }}).ParseFS(files, "page.html")
	if err != nil {
		return fmt.Errorf("read the report's template: %w", err)
	}
	return wrap.Error(t.Execute(w, v), "write the report")
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
	Outcome   string // passed or failed
	Cards     []card
	Elections []spacetime.Diagram
	Omitted   int // elections that are not drawn
	Takeovers []observe.Takeover
	Steps     []observe.Step
}

// card is one number in the head of the page.
type card struct{ Number, What, Class string }

func (p Page) view() (view, error) {
	r := p.Recording
	v := view{Page: p, Outcome: "passed", Cards: cards(r), Takeovers: first(r.Takeovers), Steps: first(r.Steps)}
	if r.Failed != "" {
		v.Outcome = "failed"
	}
	own, err := files.ReadFile("style.css")
	if err != nil {
		return view{}, fmt.Errorf("read the report's style: %w", err)
	}
	lanes, err := spacetime.Style()
	if err != nil {
		return view{}, err
	}
	v.Style = template.CSS(own) + lanes
	names := elections(r)
	v.Omitted = max(0, len(names)-maxDrawn)
	v.Elections = each.Of(names[:len(names)-v.Omitted], func(name string) spacetime.Diagram { return drawElection(r, name) })
	return v, nil
}

// cards returns the numbers that a reader wants to see first.
func cards(r *observe.Recording) []card {
	longest := int64(0)
	for _, t := range r.Takeovers {
		longest = max(longest, t.Gap)
	}
	overlap := card{fmt.Sprint(len(r.Overlaps)), "overlaps of leaders", "good"}
	if len(r.Overlaps) > 0 {
		overlap.Class = "bad"
	}
	return []card{
		{fmt.Sprint(len(r.Hosts)), "hosts, " + cmp.Or(r.Network, "network unknown"), ""},
		{fmt.Sprint(len(r.Faults)), "faults", ""},
		{fmt.Sprint(len(r.Takeovers)), "leaderships", ""},
		{seconds(time.Duration(longest)), "longest from the end of a lease to the next leader", ""},
		overlap,
	}
}

// first returns the first maxRows rows of a table.
func first[T any](rows []T) []T { return rows[:min(len(rows), maxRows)] }
