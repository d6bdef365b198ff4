package agent

import (
	"log/slog"
	"sync"
	"time"

	"github.com/doyen-election/doyen/internal/base/logger"
)

// logLevel is the level of the log: the configured one, or another one for a limited time.
type logLevel struct {
	slog.LevelVar
	mu         sync.Mutex
	configured string
	returns    *time.Timer // ends the other level; nil: the configured level is in use
}

// configure changes the configured level. While another level is in use, the change waits.
func (l *logLevel) configure(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.configured = level
	if l.returns == nil {
		l.Set(logger.Level(level))
	}
}

// during sets another level until the limit has passed, and returns the configured level, which is used again then.
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
		if l.returns == returns { // no later call of during has replaced this timer
			l.returns = nil
			l.Set(logger.Level(l.configured))
		}
	})
	l.returns = returns
	return l.configured
}
