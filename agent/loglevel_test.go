package agent

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheLogReturnsToTheConfiguredLevelByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logLevel
		is := func(want slog.Level) {
			t.Helper()
			synctest.Wait()
			if l.Level() != want {
				t.Errorf("the level is %s, want %s", l.Level(), want)
			}
		}
		pass := func(d time.Duration) { <-time.After(d) }
		l.configure("info")
		is(slog.LevelInfo)
		if then := l.during("debug", time.Minute); then != "info" {
			t.Errorf("returns to %q", then)
		}
		pass(59 * time.Second)
		is(slog.LevelDebug)
		l.configure("warn") // a reload does not end the other level
		is(slog.LevelDebug)
		pass(time.Second)
		is(slog.LevelWarn)

		l.during("debug", time.Minute)
		pass(30 * time.Second)
		l.during("error", time.Hour) // this call replaces the earlier end
		pass(31 * time.Second)
		is(slog.LevelError)
		pass(time.Hour)
		is(slog.LevelWarn)
		l.configure("info")
		is(slog.LevelInfo)
	})
}
