package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/api"
)

// maxLine bounds one line of a watch, in bytes.
const maxLine = 1 << 20

// Watch follows the changes of an election: GET /v1/elections/NAME/watch. The first element is
// a snapshot of the present state. With after 0, later changes follow. With the index of an
// earlier change, the changes since that one follow first, the oldest first; the snapshot then
// has that index, and may be newer than the changes after it. An element of type lagged means
// that changes were lost. It carries a new snapshot, and comes in place of the first one if
// the agent no longer knows what followed the index.
//
// The sequence ends when the loop is left, or with an element that carries an error: ctx's
// when that ended, *APIError when the agent refused, *UnreachableError when it could not be
// asked or went away. To range over the sequence again sends a new request. A frozen agent
// just sends nothing.
func (c *Client) Watch(ctx context.Context, name string, after uint64) iter.Seq2[api.Change, error] {
	path := electionPath(name, "/watch")
	if after > 0 {
		path += "?after=" + strconv.FormatUint(after, 10)
	}
	return func(yield func(api.Change, error) bool) {
		response, err := c.send(ctx, c.http, http.MethodGet, path, nil)
		if err != nil {
			yield(api.Change{}, err)
			return
		}
		defer response.Body.Close()
		for change, err := range events[api.Change](c, response.Body) {
			if err != nil {
				yield(api.Change{}, c.ended(ctx, "watch", err))
				return
			}
			if !yield(change, nil) {
				return
			}
		}
	}
}

// events decodes each line that is not empty. The last element carries the error that ended the
// lines, io.EOF if the agent ended them.
func events[E any](c *Client, r io.Reader) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		lines.Split(wholeLines)
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				continue
			}
			var event E
			if err := json.Unmarshal(line, &event); err != nil {
				yield(event, fmt.Errorf("%w: %w", errBadLine, err))
				return
			}
			if c.Raw != nil {
				c.Raw(line)
			}
			if !yield(event, nil) {
				return
			}
		}
		err := cmp.Or(lines.Err(), io.EOF)
		if errors.Is(err, bufio.ErrTooLong) {
			err = tooLongError{maxLine}
		}
		yield(*new(E), err)
	}
}

// wholeLines splits at newlines. It drops what follows the last newline: the connection has
// cut that line off.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

var errBadLine = errors.New("a line is not valid")

// ended is why a stream of lines ended.
func (c *Client) ended(ctx context.Context, stream string, err error) error {
	if errors.Is(err, errBadLine) {
		return fmt.Errorf("decode the %s: %w", stream, err)
	}
	return c.unanswered(ctx, err)
}

const (
	// A follower that lost its agent asks again after againFirst, then after twice that, up to
	// againMost.
	againFirst = 20 * time.Millisecond
	againMost  = 500 * time.Millisecond
)

// Follow is Watch for a reader that outlives the agent's process: it starts with a snapshot, and
// an agent that goes away is asked again until it answers or has been away for so long. What
// changed meanwhile follows then: an element of type restarted if the agent goes on as it was,
// and the changes since. An agent that no longer knows what changed sends an element of type
// lagged. The errors are those of Watch. One that refuses the first request ends the sequence at
// once.
func (c *Client) Follow(ctx context.Context, name string, away time.Duration) iter.Seq2[api.Change, error] {
	return func(yield func(api.Change, error) bool) {
		var index uint64
		var lost time.Time // when the agent went away; zero: it is there, or never was
		var why error      // how it went away
		pause := pause{first: againFirst, most: againMost}
		for {
			begun := index > 0
			var ended error
			for change, err := range c.Watch(ctx, name, index) {
				if err != nil {
					ended = err
					break
				}
				index, lost = change.Index, time.Time{}
				pause.reset()
				if begun && change.Type == api.ChangeSnapshot {
					continue // the changes that follow lead up to it
				}
				if !yield(change, nil) {
					return
				}
			}
			if lost.IsZero() {
				lost, why = time.Now(), ended
			}
			switch {
			case index == 0 || !returns(ended):
				why = ended
			case time.Since(lost) >= away:
			case pause.wait(ctx):
				continue
			default:
				why = c.unanswered(ctx, ctx.Err())
			}
			yield(api.Change{}, why)
			return
		}
	}
}

// returns reports whether what ended a watch may be over once the agent has started again. Just
// after its start it may not know the election yet.
func returns(err error) bool {
	refused, ok := errors.AsType[*APIError](err)
	return ok && refused.Status == http.StatusNotFound || passing(err)
}
