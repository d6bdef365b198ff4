package spacetime

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

//go:embed page.html fragment.html style.css
var files embed.FS

// Write draws the diagram as a page.
func Write(w io.Writer, d Diagram) error { return execute(w, "page.html", d) }

// Fragment draws the diagram as a part of another page. That page has to include Style. It has to
// show the diagram's title, facts and command itself.
func (d Diagram) Fragment() (template.HTML, error) {
	var text strings.Builder
	err := execute(&text, "fragment", d)
	return template.HTML(text.String()), err // the template escaped it
}

func execute(w io.Writer, name string, d Diagram) error {
	t, err := template.ParseFS(files, "page.html", "fragment.html")
	if err != nil {
		return fmt.Errorf("read the diagram's template: %w", err)
	}
	view, err := newView(d)
	if err != nil {
		return err
	}
	return wrap.Error(t.ExecuteTemplate(w, name, view), "write the diagram")
}

// Style is the CSS that a page with diagrams needs. All of it is nested below the class
// spacetime.
func Style() (template.CSS, error) {
	text, err := files.ReadFile("style.css")
	return template.CSS(text), wrap.Error(err, "read the diagram's style")
}

// view is what the templates show.
type view struct {
	Diagram
	Heads         []head
	Width, Height float64
	Text          float64
	Drawing       template.HTML
	Style         template.CSS
}

// head is the name above a lane.
type head struct {
	X    float64
	Name string
}

func newView(d Diagram) (view, error) {
	style, err := Style()
	if err != nil {
		return view{}, err
	}
	g := newDrawing(d)
	var heads []head
	for i, name := range d.Lanes {
		heads = append(heads, head{g.x(i), name})
	}
	g.draw()
	return view{g.Diagram, heads, g.text + 860, g.axis.bottom() + 30, g.text, g.HTML(), style}, nil
}
