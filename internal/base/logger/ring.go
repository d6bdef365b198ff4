package logger

import (
	"bytes"
	"slices"
	"sync"
)

const (
	ringLines = 1000
	ringWidth = 1 << 10 // how many bytes of a line are kept
)

// Ring keeps the newest 1,000 lines of a log in memory, up to a kilobyte of each. Every Write is one
// line, as a slog handler writes it.
type Ring struct {
	mu    sync.Mutex
	lines [][]byte
	next  int // where the next line goes
}

// Write keeps a line. It never fails.
func (r *Ring) Write(line []byte) (int, error) {
	kept := bytes.TrimSuffix(line[:min(len(line), ringWidth)], []byte("\n"))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < ringLines {
		r.lines = append(r.lines, slices.Clone(kept))
		return len(line), nil
	}
	r.lines[r.next] = append(r.lines[r.next][:0], kept...)
	r.next = (r.next + 1) % ringLines
	return len(line), nil
}

// Text returns the lines, the newest last.
func (r *Ring) Text() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text bytes.Buffer
	for _, line := range slices.Concat(r.lines[r.next:], r.lines[:r.next]) {
		text.Write(line)
		text.WriteByte('\n')
	}
	return text.Bytes()
}
