package serve_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/api"
)

func TestEveryBadCallHasItsStatusAndCode(t *testing.T) {
	a := stand(t)
	cases := []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"GET", "/v2/agent", "", 404, "not_found"},
		{"GET", "/v1/elections/payments", "", 404, "not_found"},
		{"GET", "/v1/elections/UPPER", "", 400, "bad_request"},
		{"GET", "/v1/elections/_roster", "", 400, "bad_request"},
		{"GET", "/v1/elections/a%2Fb", "", 400, "bad_request"},
		{"GET", "/v1/elections/default?consistency=some", "", 400, "bad_request"},
		{"GET", "/v1/elections?consistency=some", "", 400, "bad_request"},
		{"GET", "/v1/elections/default/watch?after=x", "", 400, "bad_request"},
		{"GET", "/v1/elections/UPPER/watch", "", 400, "bad_request"},
		{"GET", "/leader?election=A", "", 400, "bad_request"},
		{"DELETE", "/v1/agent", "", 405, "bad_request"},
		{"GET", "/v1/elections/default/resign", "", 405, "bad_request"},
		{"POST", "/v1/elections/payments/resign", "", 404, "not_found"},
		{"POST", "/v1/elections/default/resign", "[", 400, "bad_request"},
		{"POST", "/v1/elections/default/transfer", "{}", 400, "bad_request"},
		{"POST", "/v1/elections/default/transfer", `{"to":7}`, 400, "bad_request"},
		{"POST", "/v1/elections/default/transfer", `{"to":"nobody"}`, 404, "not_found"},
		{"POST", "/v1/drain", `{}`, 400, "bad_request"},
		{"POST", "/v1/drain", `{"on":true} x`, 400, "bad_request"},
		{"POST", "/v1/drain", strings.Repeat(" ", 65<<10), 413, "too_large"},
		{"POST", "/v1/drain", `[true]`, 400, "bad_request"},
		{"POST", "/v1/drain", `{"on":"yes"}`, 400, "bad_request"},
		{"POST", "/v1/leave", `7`, 400, "bad_request"},
		{"GET", "/v1//agent", "", 404, "not_found"},
		{"GET", "//v1/agent", "", 404, "not_found"},
		{"POST", "/v1/drain//", `{"on":true}`, 404, "not_found"},
		{"GET", "/v1/elections/../agent", "", 404, "not_found"},
		{"GET", "/v1/elections/a%2F%2Fb", "", 404, "not_found"},
		{"GET", "/" + strings.Repeat("x", 12<<10), "", 404, "not_found"},
		{"GET", "/v1/elections/" + strings.Repeat("x", 12<<10), "", 400, "bad_request"},
		{"GET", "/leader?election=" + strings.Repeat("x", 12<<10), "", 400, "bad_request"},
		{strings.Repeat("X", 12<<10), "/v1/agent", "", 405, "bad_request"},
	}
	for _, c := range cases {
		status, text := a.do(t, c.method, c.path, c.body)
		var e api.Error
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != c.status || e.Err.Code != c.code || e.Err.Message == "" {
			t.Errorf("%.20s %.60s: %d %.200q, want %d %s", c.method, c.path, status, text, c.status, c.code)
		}
		if len(text) > 400 {
			t.Errorf("%.20s %.60s: echoed %d bytes", c.method, c.path, len(text))
		}
		for _, leak := range []string{"Go ", "struct", "json:", "<html", "<a "} {
			if strings.Contains(text, leak) {
				t.Errorf("%.20s %.60s %s: %q is not for the caller", c.method, c.path, c.body, text)
			}
		}
	}
}

func TestAMethodThatIsNotForAPathNamesThoseThatAre(t *testing.T) {
	a := stand(t)
	for path, want := range map[string]string{
		"/leader": "GET, HEAD, OPTIONS", "/v1/agent": "GET, HEAD", "/v1/drain": "POST",
	} {
		r, err := http.NewRequest("PATCH", "http://d"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := a.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if got := response.Header.Get("Allow"); got != want || !strings.Contains(string(text), "use "+want) {
			t.Errorf("%s: Allow %q, body %s; want %q", path, got, text, want)
		}
	}
}

func TestWhatIsWrongWithABodyIsSaidInItsOwnWords(t *testing.T) {
	a := stand(t)
	for body, want := range map[string]string{
		`{"to":7}`:        `"to\" must be text in quotes`,
		`["b"]`:           "must be a JSON object, as {}",
		`{"to":`:          "not valid JSON: unexpected end of JSON input, at byte 6",
		`{"to":"\u0000"}`: `"to\" must name an agent`,
	} {
		if _, text := a.do(t, "POST", "/v1/elections/default/transfer", body); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want …%s…", body, text, want)
		}
	}
	if _, text := a.do(t, "POST", "/v1/drain", `{"on":"yes"}`); !strings.Contains(text, `"on\" must be true or false`) {
		t.Errorf("drain: %s", text)
	}
}

func TestABodyWithoutALengthIsBoundedToo(t *testing.T) {
	t.Parallel() // the test waits
	a := stand(t)
	response, err := a.client.Post("http://d/v1/drain", "application/json", io.MultiReader(strings.NewReader(strings.Repeat(" ", 65<<10))))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", response.StatusCode)
	}
}

func TestAClusterWithoutQuorumHasNoVotersToChange(t *testing.T) {
	a := stand(t)
	p := *a.picture.Load()
	status := *p.Status
	status.Quorum.Enabled = false
	p.Status = &status
	a.picture.Store(&p)
	if code, text := a.do(t, "POST", "/v1/voters", `{"add":"b"}`); code != 503 || !strings.Contains(text, "runs without quorum") {
		t.Errorf("%d %s", code, text)
	}
}
