package runner

import (
	"fmt"
	"time"
)

const (
	// maxLines is how many lines may wait to be written.
	maxLines = 64
	// lastLines is how long Run's end waits for the last lines to be written.
	lastLines = 200 * time.Millisecond
)

// speak starts a goroutine that writes the lines: stderr may be a full pipe that nobody reads, and
// that must not block the runner. finish waits a moment until the last lines are written.
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

// say queues a line to be written, or drops it if too many lines wait.
func (c *Config) say(format string, args ...any) {
	if c.lines == nil {
		return
	}
	select {
	case c.lines <- fmt.Sprintf(format, args...):
	default:
	}
}
