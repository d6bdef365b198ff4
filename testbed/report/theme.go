package report

import (
	"fmt"
	"html"
	"html/template"
	"image/color"
	"strings"
)

// ink is a colour of a chart, named by its purpose. Charts are drawn with colours that stand
// for inks, and the page says how each ink looks in light and dark.
type ink struct {
	name        string // of the CSS variable
	light, dark string
}

// inks returns all inks. Those of series are the colours of Okabe and Ito (2008), which people
// with any colour vision tell apart, darkened or lightened to be read on paper. Series differ
// in dashes and shapes as well.
func inks() []ink {
	return []ink{
		{"paper", "#ffffff", "#15181d"},
		{"ink", "#1d2129", "#e6e8ec"},
		{"soft", "#5d6570", "#a0a8b4"},
		{"faint", "#e3e6ea", "#2c323b"},
		{"one", "#0060a5", "#58aee8"},
		{"two", "#b35900", "#f0a33c"},
		{"three", "#00785a", "#3fc79f"},
		{"four", "#9b3f76", "#de8cbb"},
		{"five", "#5d6570", "#a0a8b4"},
	}
}

// standIn is the colour that stands for the i-th ink in a drawing.
func standIn(i int) color.NRGBA { return color.NRGBA{R: 0xd0, G: 0x5e, B: byte(0x10 + i), A: 0xff} }

// colorOf returns the colour that stands for the named ink; black for an unknown name.
func colorOf(name string) color.Color {
	for i, k := range inks() {
		if k.name == name {
			return standIn(i)
		}
	}
	return color.Black
}

// variables returns the inks as CSS variables.
func variables() string {
	var light, dark strings.Builder
	for _, k := range inks() {
		fmt.Fprintf(&light, "--%s:%s;", k.name, k.light)
		fmt.Fprintf(&dark, "--%s:%s;", k.name, k.dark)
	}
	return fmt.Sprintf(":root{color-scheme:light dark;%s}\n@media (prefers-color-scheme:dark){:root{%s}}", light.String(), dark.String())
}

// fonts have the same widths as the font that charts are measured with.
const fonts = "'Liberation Sans',Arial,Helvetica,sans-serif"

// themed replaces the stand-in colours by the inks' CSS variables, and the font by fonts.
func themed(svg string) string {
	for i, k := range inks() {
		c := standIn(i)
		svg = strings.ReplaceAll(svg, fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B), "var(--"+k.name+")")
	}
	svg = strings.ReplaceAll(svg, "font-family:Liberation Sans;font-variant:normal", "font-family:"+fonts)
	return strings.ReplaceAll(svg, ";font-weight:normal;font-style:normal", "")
}

// alone makes a drawing a file with its own colours.
func alone(svg string) string {
	svg = svg[strings.Index(svg, "<svg"):]
	end := strings.Index(svg, ">")
	style := fmt.Sprintf("\n<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"var(--paper)\"/>", variables())
	return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg[:end+1] + style + svg[end+1:]
}

// embedded makes a drawing a part of a page. It has a name for those who can't see it, and is
// as wide as there is room.
func embedded(svg, title string) template.HTML {
	_, size, _ := strings.Cut(svg, "viewBox=")
	return template.HTML(`<svg class="chart" role="img" aria-label="` + html.EscapeString(title) + `" viewBox=` + strings.TrimSpace(size))
}
