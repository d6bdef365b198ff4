package runner

import (
	"fmt"
	"time"
)

const (
	// maxLines bounds the lines that wait to be written.
	maxLines = 64
	// lastLines is how long the end waits for the lines that are left.
	lastLines = 200 * time.Millisecond
)

// speak has a separate goroutine write the lines: stderr may be a full pipe that nobody
// reads, which must not block the runner. finish waits a little for the last lines.
func (c *Config) speak() (finish func()) {
	if c.Say == nil {
		return func() {}
	}
	lines, written := make(chan string, maxLines), make(chan struct{})
	c.lines = lines
	go func() {
		defer close(written)
		for line := range lines {
			c.Say(line)
		}
	}()
	return func() {
		close(lines)
		select {
		case <-written:
		case <-time.After(lastLines):
		}
	}
}

// say has a line written, or drops it if too many wait.
func (c *Config) say(format string, args ...any) {
	if c.lines == nil {
		return
	}
	select {
	case c.lines <- fmt.Sprintf(format, args...):
	default:
	}
}
