package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

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

// Open writes where a page is, and shows it in a browser if there is a display.
func Open(ctx context.Context, path string, out io.Writer, getenv func(string) string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find %s: %w", path, err)
	}
	fmt.Fprintf(out, "file://%s\n", absolute)
	opener := opener(runtime.GOOS, getenv)
	if opener == "" {
		return nil
	}
	if _, err := exec.LookPath(opener); err != nil {
		return nil // the path of the page has been written
	}
	if err := exec.CommandContext(ctx, opener, absolute).Run(); err != nil {
		return fmt.Errorf("open %s with %s: %w", absolute, opener, err)
	}
	return nil
}

// opener is the program that shows a file on the display; "" without a display.
func opener(system string, getenv func(string) string) string {
	switch {
	case system == "darwin":
		return "open"
	case getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "":
		return "xdg-open"
	}
	return ""
}
