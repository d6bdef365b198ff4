package spacetime

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

// Write draws the diagram as a page.
func Write(w io.Writer, d Diagram) error {
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	g := newDrawing(d)
	type head struct {
		X    float64
		Name string
	}
	var heads []head
	for i, name := range d.Lanes {
		heads = append(heads, head{g.x(i), name})
	}
	data := struct {
		Diagram
		Heads         []head
		Width, Height float64
		Text          float64
		Drawing       template.HTML
	}{g.Diagram, heads, g.text + 860, g.axis.bottom() + 30, g.text, template.HTML(g.draw())} // its texts are escaped
	if err := page.Execute(w, data); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
