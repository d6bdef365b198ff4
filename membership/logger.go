package membership

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/internal/base/offer"
)

const (
	logQueue  = 256              // lines
	logLine   = 300              // how many bytes of a line are kept
	logEvery  = 30 * time.Second // the least time between two lines of a kind
	logKinds  = 128
	logPrefix = "memberlist: "
)

// logTap receives memberlist's log. Memberlist logs under its lock, so a line is only copied and queued.
// If the queue is full, the line is dropped.
type logTap struct {
	log   *slog.Logger
	lines chan string
	kinds map[string]time.Time // when a line of that kind was last logged; only drain uses it
}

func newLogTap(log *slog.Logger) *logTap {
	return &logTap{log: cmp.Or(log, slog.New(slog.DiscardHandler)), lines: make(chan string, logQueue), kinds: map[string]time.Time{}}
}

// Write queues one line. log.Logger calls it once for each line.
func (t *logTap) Write(p []byte) (int, error) {
	level, _ := parseLevel(string(p[:min(len(p), 16)]))
	if level == slog.LevelDebug && !t.log.Enabled(context.Background(), level) {
		return len(p), nil
	}
	line := string(p)
	if len(line) > logLine {
		// The sender's address is at the line's end, so both ends are kept.
		line = line[:logLine/2] + " … " + line[len(line)-logLine/2:]
	}
	offer.To(t.lines, line)
	return len(p), nil
}

// drain logs the queued lines until the context ends.
func (t *logTap) drain(ctx context.Context) {
	for {
		select {
		case line := <-t.lines:
			t.take(line, time.Now())
		case <-ctx.Done():
			return
		}
	}
}

func (t *logTap) take(line string, now time.Time) {
	level, text := parseLevel(strings.TrimSpace(line))
	text = strings.TrimPrefix(text, logPrefix)
	if expected(text) {
		level = slog.LevelDebug
	}
	if t.log.Enabled(context.Background(), level) && (level <= slog.LevelDebug || t.first(text, now)) {
		t.log.Log(context.Background(), level, "gossip: "+text)
	}
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// first reports whether no line of this kind was logged for logEvery. Lines that differ only in numbers
// are of one kind.
func (t *logTap) first(text string, now time.Time) bool {
	kind := digits.ReplaceAllString(text[:min(len(text), 120)], "0")
	if last, ok := t.kinds[kind]; ok && now.Sub(last) < logEvery {
		return false
	}
	if len(t.kinds) >= logKinds {
		maps.DeleteFunc(t.kinds, func(_ string, last time.Time) bool { return now.Sub(last) >= logEvery })
		if len(t.kinds) >= logKinds {
			return false
		}
	}
	t.kinds[kind] = now
	return true
}

// parseLevel splits "[LEVEL] text". What memberlist calls an error becomes a warning: it
// concerns one message or one stream, and gossip survives that.
func parseLevel(line string) (slog.Level, string) {
	level, text, ok := strings.Cut(line, "] ")
	if !ok || !strings.HasPrefix(level, "[") {
		return slog.LevelInfo, line
	}
	switch level {
	case "[DEBUG":
		return slog.LevelDebug, text
	case "[INFO":
		return slog.LevelInfo, text
	default:
		return slog.LevelWarn, text
	}
}

// expected reports whether a line is not worth logging: it shows that a restarted agent was pinged by its
// former name, or repeats a refusal that is reported elsewhere.
func expected(text string) bool {
	starts := []string{"Got ping for unexpected node", "ignoring alive message", "Refuting", "Failed fallback TCP ping"}
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(text, start) })
}
