package report

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/doyen-election/doyen/testbed/bench"
)

// WritePlots writes every chart of a bench report as an SVG file into a directory, and returns
// the files. Each file suits light and dark.
func WritePlots(dir string, r bench.Report) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write plots: %w", err)
	}
	var written []string
	for _, c := range charts(r) {
		svg, err := c.draw()
		if err != nil {
			return written, fmt.Errorf("write plots: %w", err)
		}
		path := filepath.Join(dir, c.name+".svg")
		if err := os.WriteFile(path, []byte(alone(svg)), 0o644); err != nil {
			return written, fmt.Errorf("write plots: %w", err)
		}
		written = append(written, path)
	}
	return written, nil
}
