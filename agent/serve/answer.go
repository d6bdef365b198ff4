package serve

import (
	"bytes"
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
)

// answer writes a success. The body must be a value that always encodes.
func answer(w http.ResponseWriter, body any) { write(w, http.StatusOK, body) }

func fail(w http.ResponseWriter, status int, detail api.ErrorDetail) {
	write(w, status, api.Error{Err: detail})
}

func write(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":{"code":"unavailable","message":"the answer can't be encoded"}}`)
	}
	data = append(data, '\n')
	// Some changes take longer than an answer may.
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have gone
}

func badRequest(w http.ResponseWriter, message string) {
	fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest, Message: message})
}

func tooLarge() api.ErrorDetail {
	return api.ErrorDetail{Code: api.CodeTooLarge, Message: "the body is over the limit of " + strconv.Itoa(maxBody) + " bytes"}
}

// receive reads the whole body of any request into memory. If the body is too long or does not
// come, it answers and returns false. The deadline is for the whole body. It stays after a
// failure: net/http reads the announced rest before it answers, and would read without end.
func receive(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength == 0 {
		return true
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		fail(w, http.StatusRequestEntityTooLarge, tooLarge())
		return false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		fail(w, http.StatusRequestEntityTooLarge, tooLarge())
		return false
	case err != nil:
		w.Header().Set("Connection", "close")
		badRequest(w, "the body did not arrive completely")
		return false
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(data))
	return true
}

// body decodes a JSON object into v; an empty body leaves v as it is. If the body is not
// valid, it answers and returns false.
func body(w http.ResponseWriter, r *http.Request, v any) bool {
	data, _ := io.ReadAll(r.Body) // in memory already, see receive
	if len(data) == 0 {
		return true
	}
	if err := json.Unmarshal(data, v); err != nil {
		badRequest(w, misread(err))
		return false
	}
	return true
}

// misread describes what is wrong with a body, in JSON's words and not in Go's.
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

// clip makes text of the caller short and printable, for use in an answer.
func clip(s string) string {
	const longest = 80
	s = strings.ToValidUTF8(s, "?")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// name takes the election from the path. If it is not a valid name, it answers and returns false.
func name(w http.ResponseWriter, r *http.Request) (election.Name, bool) {
	return validName(w, r.PathValue("name"))
}

func validName(w http.ResponseWriter, s string) (election.Name, bool) {
	if !election.ValidName(s) {
		badRequest(w, strconv.Quote(clip(s))+" is not a valid election name: [a-z0-9][a-z0-9._-]{0,62}")
		return "", false
	}
	return election.Name(s), true
}

func unknownElection(w http.ResponseWriter, name election.Name) {
	fail(w, http.StatusNotFound, api.ErrorDetail{Code: api.CodeNotFound, Message: "the election " + string(name) + " has no candidate"})
}

func refuse(w http.ResponseWriter, r *api.ErrorDetail) {
	status := http.StatusConflict
	switch r.Code {
	case api.CodeBadRequest:
		status = http.StatusBadRequest
	case api.CodeForbidden:
		status = http.StatusForbidden
	case api.CodeNotFound:
		status = http.StatusNotFound
	case api.CodeNoQuorum, api.CodeBusy, api.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	fail(w, status, api.ErrorDetail{Code: r.Code, Message: r.Message})
}

// unanswered answers a command that the agent did not reply to.
func unanswered(w http.ResponseWriter, err error) {
	message := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		message = "the agent did not answer in time"
	}
	fail(w, http.StatusServiceUnavailable, api.ErrorDetail{Code: api.CodeUnavailable, Message: message})
}
