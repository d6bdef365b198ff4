package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"

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
		response, err := c.send(ctx, http.MethodGet, path, nil)
		if err != nil {
			yield(api.Change{}, err)
			return
		}
		defer response.Body.Close()
		for change, err := range c.changes(response.Body) {
			if err != nil {
				yield(api.Change{}, c.ended(ctx, err))
				return
			}
			if !yield(change, nil) {
				return
			}
		}
	}
}

// changes decodes the lines of a watch. The last element carries the error that ended the
// lines, io.EOF if the agent ended them.
func (c *Client) changes(r io.Reader) iter.Seq2[api.Change, error] {
	return func(yield func(api.Change, error) bool) {
		for line, err := range readLines(r) {
			var change api.Change
			if err == nil {
				if bad := json.Unmarshal(line, &change); bad != nil {
					err = &badLineError{"change", bad}
				}
			}
			if err != nil {
				yield(api.Change{}, err)
				return
			}
			if c.Raw != nil {
				c.Raw(line)
			}
			if !yield(change, nil) {
				return
			}
		}
	}
}

// readLines yields each line that is not empty; a line is valid until the next one. The last
// element carries the error that ended the lines, io.EOF if the agent ended them.
func readLines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		lines.Split(wholeLines)
		for lines.Scan() {
			if len(lines.Bytes()) > 0 && !yield(lines.Bytes(), nil) {
				return
			}
		}
		err := lines.Err()
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			err = tooLongError{maxLine}
		case err == nil:
			err = io.EOF
		}
		yield(nil, err)
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

// badLineError is a line that is not valid in its stream.
type badLineError struct {
	of  string // change, or event of a campaign
	err error
}

func (e *badLineError) Error() string { return "a line is not a valid " + e.of + ": " + e.err.Error() }
func (e *badLineError) Unwrap() error { return e.err }

func (c *Client) ended(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*badLineError](err); ok {
		return fmt.Errorf("decode the watch: %w", err)
	}
	return c.unanswered(ctx, err)
}
