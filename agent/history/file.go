package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/doyen-election/doyen/api"
)

const (
	// maxLine and maxFile bound how many bytes of a line, and of a file, are read.
	maxLine = 16 << 10
	maxFile = 64 << 20
	// tryAgain is the time from a failed write to the next attempt.
	tryAgain = time.Minute
	// markEvery is how often the file's time is set. From that time the next process run knows how long this one ran.
	markEvery = time.Minute
)

// file is where a log is kept: one line of JSON for each change, the oldest first. Writes are not
// synced: a crash of the host may cost the newest changes, but a crash of the agent costs none.
type file struct {
	path    string // empty: the log is kept in memory only
	problem func(error)
	wake    chan struct{} // has an element when changes wait to be written

	ran time.Time // when this agent's former process was last known to run; zero: not known

	mu    sync.Mutex // held while the file is written
	lines int        // how many lines the file has
	whole bool       // the next write replaces the whole file, since the file may end within a line
}

// Keep reads the changes that earlier runs of the process added to a file, and keeps the log there from now on.
// Call it before the first Add. A file that can't be read is set aside, the history starts empty,
// and an error reports that. problem is called for the first of several failed writes in a row.
func (l *Log) Keep(path string, problem func(error)) error {
	l.file.path, l.file.problem = path, problem
	err := l.read()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l.kept, l.acts, l.file.lines, l.file.whole = nil, 0, 0, true
	clear(l.earlier)
	aside := path + ".damaged"
	if moved := os.Rename(path, aside); moved != nil {
		return fmt.Errorf("the history %s can't be read, and starts again: %w", path, errors.Join(err, moved))
	}
	return fmt.Errorf("the history %s can't be read, and starts again; the file is now %s: %w", path, aside, err)
}

func (l *Log) read() error {
	f, err := os.OpenFile(l.file.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case info.Size() > maxFile:
		return fmt.Errorf("it has %d bytes, at most %d are read", info.Size(), maxFile)
	}
	l.file.ran = info.ModTime()
	for in := bufio.NewReaderSize(f, maxLine); ; l.file.lines++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			l.file.whole = len(line) > 0 // the file ends within a line, since a write was cut off
			return nil
		}
		var t api.Transition
		if err == nil {
			err = json.Unmarshal(line, &t)
		}
		if err == nil && (t.Type == "" || t.Time.IsZero()) {
			err = errors.New("it is not a change")
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", l.file.lines+1, err)
		}
		l.push(t)
		l.recall(t)
	}
}

// recall updates l.earlier by a change from the file.
func (l *Log) recall(t api.Transition) {
	switch {
	case !changes(t):
	case t.Leader == nil:
		delete(l.earlier, t.Election)
	default:
		l.earlier[t.Election] = leadership{t.Leader.ID, t.Term}
	}
}

// Run writes added changes to the file, until ctx ends.
func (l *Log) Run(ctx context.Context) {
	var again <-chan time.Time
	mark := time.NewTicker(markEvery)
	defer mark.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.file.wake:
		case <-again:
		case <-mark.C:
		}
		again = nil
		err := l.Flush()
		if err != nil {
			again = time.After(tryAgain)
			if !failed {
				l.file.problem(fmt.Errorf("the history can't be written, and a restart may lose its newest changes: %w", err))
			}
		}
		failed = err != nil
	}
}

// Started adds an entry about the start of this process run. Call Started after Keep.
func (l *Log) Started(now time.Time, boottime int64) {
	down := time.Duration(0)
	if !l.file.ran.IsZero() {
		down = max(0, now.Sub(l.file.ran))
	}
	l.Add(api.Transition{Time: now.UTC(), Type: api.ChangeStarted, Reason: "the agent's process started", DownMS: down.Milliseconds(), BoottimeNS: boottime})
}

// Flush writes the changes added since the last write. Without any, it sets the file's time (markEvery).
func (l *Log) Flush() error {
	f := &l.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" {
		return nil
	}
	l.mu.Lock()
	fresh := l.unsaved
	f.whole = f.whole || len(fresh) > MaxKept || f.lines+len(fresh) > 2*MaxKept
	if f.whole {
		fresh = slices.Clone(l.kept)
	}
	l.unsaved = nil
	l.mu.Unlock()
	if len(fresh) == 0 && !f.whole {
		now := time.Now()
		_ = os.Chtimes(f.path, now, now) // after an error, the downtime that the next run reports may be a minute too long
		return nil
	}
	var lines bytes.Buffer
	encode := json.NewEncoder(&lines)
	for _, t := range fresh {
		if err := encode.Encode(t); err != nil {
			return err
		}
	}
	if f.whole {
		f.lines = 0
	}
	err := f.write(lines.Bytes())
	f.whole = err != nil
	f.lines += len(fresh)
	return err
}

// write adds lines to the file. If f.whole is set, it replaces the file by these lines.
func (f *file) write(lines []byte) error {
	path, flags := f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK
	if f.whole {
		path, flags = f.path+".new", flags|os.O_TRUNC
	}
	out, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(lines)
	if err = errors.Join(err, out.Close()); err == nil && f.whole {
		err = os.Rename(path, f.path)
	}
	return err
}
