package report

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	chartWidth  = 620 // points, as all sizes here
	chartHeight = 270
	legendWidth = 172
	maxSeries   = 5 // as many line styles as there are
)

type chart struct {
	name   string // of its file, without the ending
	title  string
	x, y   string // what the axes show, and in which unit
	series []series
	limit  float64   // a line that values should not cross; 0 for none
	across bool      // the limit is of y, not of x
	ticks  []float64 // of x; nil leaves them to the axis
	shares bool      // y goes from 0 to 1
	logX   bool
	logY   bool
	fromY0 bool // y begins at 0
}

type series struct {
	name   string
	points plotter.XYs
	spread plotter.YErrors // nil, or how far below and above each point values went
	steps  bool            // the points are corners of a staircase, and have no marks
	rug    []float64       // values to mark at the foot of the chart
}

// draw returns the chart as SVG whose colours are CSS variables.
func (c chart) draw() (string, error) {
	p := plot.New()
	if err := c.fill(p); err != nil {
		return "", fmt.Errorf("draw %s: %w", c.name, err)
	}
	canvas := vgsvg.New(chartWidth, chartHeight)
	all := draw.New(canvas)
	p.Draw(draw.Crop(all, 6, -legendWidth, 6, -6))
	c.legend(p, draw.Crop(all, chartWidth-legendWidth+8, 0, 0, -34))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return "", fmt.Errorf("draw %s: %w", c.name, err)
	}
	return themed(svg.String()), nil
}

func (c chart) fill(p *plot.Plot) error {
	p.BackgroundColor = nil
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.TextStyle = restyle(p.Title.TextStyle, 13, "ink")
	p.Title.Padding = 8
	c.axis(&p.X, c.logX)
	c.axis(&p.Y, c.logY)
	if c.ticks != nil {
		p.X.Tick.Marker = ticksAt(c.ticks...)
	}
	if c.shares {
		p.Y.Tick.Marker = ticksAt(0, 0.25, 0.5, 0.75, 1)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = colorOf("faint"), colorOf("faint")
	grid.Vertical.Width, grid.Horizontal.Width = 1, 1
	p.Add(grid)
	for i, s := range c.series[:min(len(c.series), maxSeries)] {
		if err := s.add(p, i); err != nil {
			return err
		}
	}
	c.addLimit(p)
	if c.fromY0 {
		p.Y.Min = 0
	}
	mendLog(&p.X)
	mendLog(&p.Y)
	return nil
}

// mendLog repairs a logarithmic axis. If it has values up to 0, it becomes linear. If it has
// only one value, it gets room around that, or else the library would go below 0.
func mendLog(a *plot.Axis) {
	if _, log := a.Scale.(plot.LogScale); !log {
		return
	}
	if a.Min <= 0 {
		a.Scale, a.Tick.Marker = plot.LinearScale{}, plot.DefaultTicks{}
		return
	}
	if a.Min == a.Max {
		a.Min, a.Max = a.Min/2, a.Max*2
	}
}

func (c chart) axis(a *plot.Axis, log bool) {
	a.Color, a.Tick.Color = colorOf("soft"), colorOf("soft")
	a.Label.TextStyle, a.Tick.Label = restyle(a.Label.TextStyle, 11, "ink"), restyle(a.Tick.Label, 10, "soft")
	a.Padding, a.Tick.Length, a.Label.Padding = 2, 4, 4
	if log {
		a.Scale, a.Tick.Marker = plot.LogScale{}, decades{}
	}
}

// restyle gives text a size and an ink. Its alignment and rotation stay, because they differ
// between kinds of text.
func restyle(was text.Style, size vg.Length, ink string) text.Style {
	was.Color, was.Font = colorOf(ink), font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
	return was
}

// look distinguishes the i-th series from the others, in three ways at once.
func look(i int) (name string, dashes []vg.Length, glyph draw.GlyphDrawer) {
	return []string{"one", "two", "three", "four", "five"}[i%maxSeries],
		[][]vg.Length{nil, {7, 3}, {2, 2}, {9, 3, 2, 3}, {1, 3}}[i%maxSeries],
		[]draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{}, draw.CrossGlyph{}}[i%maxSeries]
}

func (s series) add(p *plot.Plot, i int) error {
	name, dashes, glyph := look(i)
	line, marks, err := plotter.NewLinePoints(s.points)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	line.Color, line.Width, line.Dashes = colorOf(name), 2, dashes
	marks.GlyphStyle = draw.GlyphStyle{Color: colorOf(name), Radius: 3.5, Shape: glyph}
	if s.spread != nil {
		bars, err := plotter.NewYErrorBars(struct {
			plotter.XYer
			plotter.YErrorer
		}{s.points, s.spread})
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		bars.Color, bars.Width, bars.CapWidth = colorOf(name), 1, 6
		p.Add(bars)
	}
	if len(s.rug) > 0 {
		rug, err := plotter.NewScatter(footOf(s.rug, -0.03-0.035*float64(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		rug.GlyphStyle = draw.GlyphStyle{Color: colorOf(name), Radius: 2, Shape: glyph}
		p.Add(rug)
	}
	p.Add(line)
	if !s.steps {
		p.Add(marks)
	}
	return nil
}

func footOf(values []float64, y float64) plotter.XYs {
	var at plotter.XYs
	for _, x := range values {
		at = append(at, plotter.XY{X: x, Y: y})
	}
	return at
}

func (c chart) addLimit(p *plot.Plot) {
	if c.limit <= 0 {
		return
	}
	from, to := plotter.XY{X: c.limit, Y: p.Y.Min}, plotter.XY{X: c.limit, Y: p.Y.Max}
	if c.across {
		from, to = plotter.XY{X: p.X.Min, Y: c.limit}, plotter.XY{X: p.X.Max, Y: c.limit}
	}
	line := &plotter.Line{XYs: plotter.XYs{from, to}, LineStyle: limitStyle()}
	p.Add(line)
}

func limitStyle() draw.LineStyle {
	return draw.LineStyle{Color: colorOf("ink"), Width: 1, Dashes: []vg.Length{3, 3}}
}

// legend names the series to the right of the plot, where it hides nothing.
func (c chart) legend(p *plot.Plot, where draw.Canvas) {
	l := plot.NewLegend()
	l.TextStyle = restyle(l.TextStyle, 11, "ink")
	l.Top, l.Left, l.ThumbnailWidth, l.Padding = true, true, 28, 5
	for i, s := range c.series[:min(len(c.series), maxSeries)] {
		name, dashes, glyph := look(i)
		line := &plotter.Line{LineStyle: draw.LineStyle{Color: colorOf(name), Width: 2, Dashes: dashes}}
		thumbs := []plot.Thumbnailer{line}
		if !s.steps || len(s.rug) > 0 {
			thumbs = append(thumbs, &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: colorOf(name), Radius: 3, Shape: glyph}})
		}
		l.Add(s.name, thumbs...)
	}
	if c.limit > 0 {
		l.Add("limit: "+short(c.limit), &plotter.Line{LineStyle: limitStyle()})
	}
	l.Draw(where)
}

// decades puts ticks of a logarithmic axis at 1, 2 and 5 times each power of ten.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	var all []plot.Tick
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high && len(all) < 60; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := m * power; v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				all = append(all, plot.Tick{Value: v, Label: short(v)})
			}
		}
	}
	return all
}

// ticksAt puts ticks at the given values.
func ticksAt(values ...float64) plot.ConstantTicks {
	var all plot.ConstantTicks
	for _, v := range values {
		all = append(all, plot.Tick{Value: v, Label: short(v)})
	}
	return all
}

// short writes a number in few characters.
func short(x float64) string {
	switch {
	case x >= 1e6:
		return strconv.FormatFloat(x/1e6, 'g', 3, 64) + " M"
	case x >= 1e4:
		return strconv.FormatFloat(x/1e3, 'g', 3, 64) + " k"
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}
