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
	"slices"
	"strconv"
	"time"

	"github.com/doyen-election/doyen/api"
)

// maxLine bounds one line of a watch, in bytes.
const maxLine = 1 << 20

// Watch follows the changes of an election: GET /v1/elections/NAME/watch. The first element is a snapshot
// of the present state. If after is 0, later changes follow. If after is the index of an earlier change,
// the snapshot carries this index. The changes since that index follow, the oldest first: they lead up to the
// snapshot. An element of type lagged means that changes were lost, and carries a new snapshot. It replaces
// the first snapshot if the agent has dropped changes after the index. Elements of types meta and candidates
// carry a snapshot too. Skip types that you do not know. The election need not exist yet.
//
// The sequence ends when the loop ends, or with an element that has an error: ctx's error if ctx ended,
// *APIError if the agent refused, *UnreachableError if the agent could not be asked or went away. Ranging
// over the sequence again sends a new request. A frozen agent sends nothing, and causes no error.
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

// events decodes each line that is not empty. The last element has the error that ended the lines, which is
// io.EOF if the agent ended the stream.
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

// wholeLines splits at newlines. It drops an incomplete last line, which the end of the connection cut
// off.
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

// ended returns why a stream of lines ended.
func (c *Client) ended(ctx context.Context, stream string, err error) error {
	if errors.Is(err, errBadLine) {
		return fmt.Errorf("decode the %s: %w", stream, err)
	}
	return c.unanswered(ctx, err)
}

const (
	// againFirst is the wait before Follow asks a lost agent again. The wait doubles each time, up to
	// againMost.
	againFirst = 20 * time.Millisecond
	againMost  = 500 * time.Millisecond
)

// Follow is Watch for a reader that outlives the agent's process. It starts with a snapshot. If the agent
// goes away, Follow asks again until the agent answers or has been gone for the time `away`. If the agent
// then goes on as before, an element of type restarted follows, and the changes since. If the agent does
// not know what changed, an element of type lagged follows instead. An element of type candidates comes before
// these if Candidates has changed meanwhile. The errors are those of Watch. If the first request is refused,
// the sequence ends at once.
func (c *Client) Follow(ctx context.Context, name string, away time.Duration) iter.Seq2[api.Change, error] {
	return func(yield func(api.Change, error) bool) {
		var candidates []string // in the newest snapshot
		var index uint64
		var lost time.Time // when the agent went away; zero: it has not
		var why error      // how the agent went away
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
				was := candidates
				if change.Snapshot != nil {
					candidates = change.Snapshot.Candidates
				}
				if begun && change.Type == api.ChangeSnapshot {
					if slices.Equal(was, candidates) {
						continue // the changes that follow lead up to this snapshot
					}
					change.Type = api.ChangeCandidates
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

// returns reports whether the error that ended a watch may pass once the agent has started again. A 404
// may pass: just after its start, an agent may not know the election yet.
func returns(err error) bool {
	refused, ok := errors.AsType[*APIError](err)
	return ok && refused.Status == http.StatusNotFound || passing(err)
}
