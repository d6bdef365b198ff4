package logger

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestDurationsAreLoggedWithTheirUnitInEveryFormat(t *testing.T) {
	for format, want := range map[string]string{"json": `"took":"1.5s"`, "text": "took=1.5s"} {
		var out bytes.Buffer
		New(format, slog.LevelInfo, &out).With("part", "hook").Info("ran", "took", 1500*time.Millisecond)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s lacks %s", format, &out, want)
		}
	}
}
