package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/logger"
)

func refusal(code, message string) error { return &api.ErrorDetail{Code: code, Message: message} }

func badRequest(message string) error { return refusal(api.CodeBadRequest, message) }

// refuse answers with the reason why a request was not carried out.
func refuse(w http.ResponseWriter, err error) {
	detail, ok := errors.AsType[*api.ErrorDetail](err)
	if !ok {
		detail = &api.ErrorDetail{Code: api.CodeUnavailable, Message: err.Error()}
		if errors.Is(err, context.DeadlineExceeded) {
			detail.Message = "the agent did not answer in time"
		}
	}
	if detail.Code == api.CodeBusy {
		w.Header().Set("Retry-After", "1")
	}
	status := map[string]int{
		api.CodeBadRequest:   http.StatusBadRequest,
		api.CodeForbidden:    http.StatusForbidden,
		api.CodeNotFound:     http.StatusNotFound,
		api.CodeTooLarge:     http.StatusRequestEntityTooLarge,
		api.CodeBusy:         http.StatusServiceUnavailable,
		api.CodeNoQuorum:     http.StatusServiceUnavailable,
		api.CodeNotAllVoters: http.StatusServiceUnavailable,
		api.CodeUnavailable:  http.StatusServiceUnavailable,
	}[detail.Code]
	write(w, cmp.Or(status, http.StatusConflict), api.Error{Err: *detail})
}

// write answers with a body, as JSON.
func write(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":{"code":"unavailable","message":"the answer can't be encoded"}}`)
	}
	send(w, status, "application/json", append(logger.Showable(data), '\n'))
}

func send(w http.ResponseWriter, status int, contentType string, data []byte) {
	// The handler may have used up the time for writing the answer: that time starts again here.
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have gone
}

// receive reads the whole body of any request into memory. If the body is too long or does not arrive in
// time, receive answers with an error and returns false. It then leaves the deadline set: without a deadline,
// net/http would read the rest of the body before it sends the answer, perhaps without end.
func receive(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 {
		return true
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	var data []byte
	err := error(&http.MaxBytesError{Limit: maxBody})
	if r.ContentLength <= maxBody {
		data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	}
	if err != nil {
		why := badRequest("the body did not arrive completely")
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			why = refusal(api.CodeTooLarge, "the body is over the limit of "+strconv.Itoa(maxBody)+" bytes")
		}
		w.Header().Set("Connection", "close")
		refuse(w, why)
		return false
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(data))
	return true
}

// decode decodes a JSON object into v; an empty text leaves v as it is.
func decode(text []byte, v any) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return badRequest(misread(err))
	}
	return nil
}

// misread describes what is wrong with a body in words of JSON, since the decoder's error has words of Go.
func misread(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return "the body is not valid JSON: " + syntax.Error() + ", at byte " + strconv.FormatInt(syntax.Offset, 10)
	case errors.As(err, &kind) && kind.Field == "":
		return "the body must be a JSON object, as {}"
	case errors.As(err, &kind):
		wanted := "text in quotes"
		switch kind.Type.Kind() {
		case reflect.Bool:
			wanted = "true or false"
		case reflect.Int, reflect.Uint64:
			wanted = "an integer"
		}
		return strconv.Quote(kind.Field) + " must be " + wanted
	}
	return "the body is not the JSON that this call expects"
}

// clip makes text of the caller short and valid UTF-8, for use in an answer.
func clip(s string) string {
	const longest = 80
	s = strings.ToValidUTF8(s, "?")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// name returns the election that the path names.
func name(r *http.Request) (election.Name, error) { return validName(r.PathValue("name")) }

func validName(s string) (election.Name, error) {
	if !election.ValidName(s) {
		return "", badRequest(strconv.Quote(clip(s)) + " is not a valid election name: [a-z0-9][a-z0-9._-]{0,62}")
	}
	return election.Name(s), nil
}

func unknownElection(name election.Name) error {
	return refusal(api.CodeNotFound, "the election "+string(name)+" has no candidate")
}

func unknownMember(name string) error {
	return refusal(api.CodeNotFound, "no live member is named "+clip(name))
}
