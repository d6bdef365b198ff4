// Package logger makes the logs of an agent's processes. The agent and its keeper write the same format.
package logger

import (
	"io"
	"log/slog"
)

// New returns a logger of that format, text or json.
func New(format string, level slog.Leveler, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		opts.ReplaceAttr = readable
		return slog.New(slog.NewJSONHandler(showing{w}, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// Level returns the level with that name, or info if there is none.
func Level(name string) (l slog.Level) {
	_ = l.UnmarshalText([]byte(name)) // after an error, the level stays info
	return l
}

// readable writes durations with their unit. By default, JSON shows only nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
