package agent

import (
	"log/slog"
	"sync"
	"time"

	"github.com/doyen-election/doyen/internal/base/logger"
)

// logLevel is the level of the log: that of the configuration, or another one for a while.
type logLevel struct {
	slog.LevelVar
	mu         sync.Mutex
	configured string
	returns    *time.Timer // nil: the configured one counts
}

// configure takes the level of the configuration. It counts once no other one does.
func (l *logLevel) configure(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.configured = level
	if l.returns == nil {
		l.Set(logger.Level(level))
	}
}

// during sets another level for that long, and returns the one that is configured.
func (l *logLevel) during(level string, limit time.Duration) (then string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.returns != nil {
		l.returns.Stop()
	}
	l.Set(logger.Level(level))
	var returns *time.Timer
	returns = time.AfterFunc(limit, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.returns == returns { // no later call has set another one
			l.returns = nil
			l.Set(logger.Level(l.configured))
		}
	})
	l.returns = returns
	return l.configured
}
