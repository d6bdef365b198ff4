package logger

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestTheRingKeepsTheNewestLinesAndNoMore(t *testing.T) {
	var ring Ring
	var out bytes.Buffer
	log := New("text", slog.LevelInfo, &ring)
	for i := range ringLines + 7 {
		log.Info("line", "n", i)
	}
	fmt.Fprintln(&ring, strings.Repeat("x", 3*ringWidth))
	out.Write(ring.Text())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != ringLines || !strings.HasSuffix(lines[0], "n=8") || !strings.HasSuffix(lines[ringLines-2], fmt.Sprintf("n=%d", ringLines+6)) {
		t.Errorf("%d lines, from %q to %q", len(lines), lines[0], lines[len(lines)-2])
	}
	if last := lines[len(lines)-1]; len(last) != ringWidth {
		t.Errorf("a long line is kept with %d bytes", len(last))
	}
	line := []byte("a line like the others\n")
	if allocs := testing.AllocsPerRun(2*ringLines, func() { ring.Write(line) }); allocs > 0.5 {
		t.Errorf("%g allocations for each line of a full ring", allocs)
	}
}
