package spacetime

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// SVG is a drawing in the making. A shape has a class, for the style, and a title, which is
// shown when the pointer is over it. Later shapes lie on top. Every text is escaped.
type SVG struct{ out strings.Builder }

// element writes an element. It escapes the text and the title, but not the attributes.
func (s *SVG) element(tag, class, attributes, title, text string) {
	fmt.Fprintf(&s.out, `<%s class="%s" %s>`, tag, class, attributes)
	if title != "" {
		fmt.Fprintf(&s.out, "<title>%s</title>", html.EscapeString(title))
	}
	fmt.Fprintf(&s.out, "%s</%s>\n", html.EscapeString(text), tag)
}

func (s *SVG) Rect(class string, x, y, w, h float64, title string) {
	s.element("rect", class, fmt.Sprintf(`x="%.1f" y="%.1f" width="%.1f" height="%.1f"`, x, y, w, h), title, "")
}

func (s *SVG) Line(class string, x1, y1, x2, y2 float64, title string) {
	s.element("line", class, fmt.Sprintf(`x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"`, x1, y1, x2, y2), title, "")
}

// Path draws a path. Its data has a formatting verb for each number.
func (s *SVG) Path(class, title, data string, numbers ...any) {
	s.element("path", class, `d="`+fmt.Sprintf(data, numbers...)+`"`, title, "")
}

func (s *SVG) Text(class string, x, y float64, text, title string) {
	s.element("text", class, fmt.Sprintf(`x="%.1f" y="%.1f"`, x, y), title, text)
}

// Group gives shapes one class and one title.
func (s *SVG) Group(class, title string, draw func()) {
	fmt.Fprintf(&s.out, `<g class="%s"><title>%s</title>`, class, html.EscapeString(title))
	draw()
	s.out.WriteString("</g>\n")
}

// HTML returns what was drawn. It has to stand inside of an svg element.
func (s *SVG) HTML() template.HTML { return template.HTML(s.out.String()) }
