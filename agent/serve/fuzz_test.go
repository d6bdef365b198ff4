package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// staying is an agent that can be asked to leave again and again.
type staying struct{ *agent }

func (staying) Leave(context.Context) error { return nil }

// closed refuses every candidacy.
type closed struct{}

func (closed) Stand(actors.Request) (*actors.Candidacy, error) {
	return nil, &api.ErrorDetail{Code: api.CodeBusy, Message: "full"}
}
func (closed) Resume(actors.Resumption) (*actors.Candidacy, error) {
	return nil, &api.ErrorDetail{Code: api.CodeNotFound, Message: "no"}
}
func (closed) End(string) (election.Instant, bool)                   { return 0, false }
func (closed) Gone(string)                                           {}
func (closed) Report(string, api.Companion, func(uint32) bool) error { return &api.ErrorDetail{} }
func (closed) Acts(string, election.Term, func(uint32) bool) (election.Name, error) {
	return "", &api.ErrorDetail{Code: api.CodeNotFound, Message: "no such candidacy"}
}

func (closed) Receipt(string, election.Name, election.Term, election.Reason, func(uint32) bool) error {
	return &api.ErrorDetail{Code: api.CodeNotFound, Message: "no such candidacy"}
}
func (closed) Campaigns() []api.Campaign { return []api.Campaign{} }

// isHTTP reports whether the server's parser accepts the request. If not, for example because of a space in the
// query, net/http answers without the handler, and closes the connection.
func isHTTP(r *http.Request) bool {
	var sent bytes.Buffer
	r.Body = nil
	if r.Write(&sent) != nil {
		return false
	}
	_, err := http.ReadRequest(bufio.NewReader(&sent))
	return err == nil
}

// FuzzCall makes calls of any method, path, query and body. Each gets an answer with a documented status. An
// answer that is not a success has a code and a message.
func FuzzCall(f *testing.F) {
	for _, c := range [][4]string{
		{"GET", "/v1/agent", "", ""}, {"GET", "/v1/elections/default", "consistency=quorum", ""},
		{"GET", "/v1/elections/default/watch", "after=12", ""}, {"GET", "/leader", "election=default", ""},
		{"GET", "/v1/history", "election=default&limit=3", ""}, {"OPTIONS", "/leader", "election=%00", ""},
		{"POST", "/v1/elections/default/resign", "", "{}"}, {"POST", "/v1/elections/default/transfer", "", `{"to":"b"}`},
		{"POST", "/v1/elections/default/campaign", "", `{"meta":"x","priority":7}`}, {"POST", "/v1/campaigns/x/stopped", "", `{}`},
		{"POST", "/v1/drain", "", `{"on":true}`}, {"POST", "/v1/voters", "", `{"add":"d"}`}, {"POST", "/v1/leave", "", ""},
		{"HEAD", "/readyz", "x=%zz;y", ""}, {"GET", "/", " ", ""}, {"PUT", "/v1//x/../y", "", strings.Repeat("[", 5000)},
	} {
		f.Add(c[0], c[1], c[2], c[3])
	}
	statuses := []int{200, 400, 403, 404, 405, 409, 413, 503}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		a := stand(t, func(c *serve.Config) {
			c.Commands, c.Campaigns, c.Keyring = staying{c.Commands.(*agent)}, closed{}, &keys{}
			c.History = func(string, int) []api.Transition { return []api.Transition{} }
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, "http://d/", strings.NewReader(body))
		if err != nil {
			return // HTTP clients never send this
		}
		r.URL = &url.URL{Scheme: "http", Host: "d", Path: path, RawQuery: query}
		if !strings.HasPrefix(path, "/") || method == http.MethodConnect || !isHTTP(r.Clone(ctx)) {
			return // HTTP clients never send this
		}
		response, err := a.client.Do(r)
		if err != nil {
			if strings.Contains(err.Error(), "net/http: ") || strings.Contains(err.Error(), "malformed HTTP") {
				return // HTTP clients never send this
			}
			t.Fatalf("%q %q: not answered: %v", method, r.URL.RequestURI(), err)
		}
		defer response.Body.Close()
		if !slices.Contains(statuses, response.StatusCode) {
			t.Fatalf("%q %q: status %d", method, r.URL.RequestURI(), response.StatusCode)
		}
		if response.StatusCode == 200 || method == http.MethodHead {
			return // such an answer may be endless
		}
		text, err := io.ReadAll(response.Body)
		var e api.Error
		plain := strings.HasPrefix(path, "/leader") || path == "/livez" || path == "/readyz" || path == "/metrics"
		if err != nil || !plain && (json.Unmarshal(text, &e) != nil || e.Err.Code == "" || e.Err.Message == "" || len(text) > 2000) {
			t.Fatalf("%q %q: status %d, body %.300q, %v", method, r.URL.RequestURI(), response.StatusCode, text, err)
		}
	})
}
