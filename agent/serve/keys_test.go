package serve_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

type keys struct{ asked api.KeysRequest }

func (k *keys) Keys() []api.Key              { return []api.Key{{Fingerprint: "0011", InUse: true}} }
func (k *keys) NewKey() (text, print string) { return "AAAA", "ffff" }
func (k *keys) ChangeKeys(r api.KeysRequest) *api.ErrorDetail {
	k.asked = r
	if r.Remove != "" {
		return &api.ErrorDetail{Code: api.CodeInUse, Message: "in use"}
	}
	return nil
}

func TestKeysAreListedAndChanged(t *testing.T) {
	k := &keys{}
	owner := stand(t, func(c *serve.Config) { c.Keyring = k })
	const list = `{"keys":[{"fingerprint":"0011","in_use":true}]}`
	for _, c := range []struct {
		method     string
		body, want string
		status     int
	}{
		{http.MethodGet, "", list, 200},
		{http.MethodPost, `{"add":"x"}`, list, 200},
		{http.MethodPost, `{"remove":"0011"}`, "in_use", 409},
		{http.MethodPost, `{"add":1}`, "text in quotes", 400},
		{http.MethodDelete, "", "GET, HEAD, POST", 405},
	} {
		status, text := owner.do(t, c.method, "/v1/keys", c.body)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", c.method, c.body, status, text, c.status, c.want)
		}
	}
	if k.asked.Remove != "0011" {
		t.Errorf("asked for %+v", k.asked)
	}
}

func TestAKeyThatAMemberLacksIsNotUsed(t *testing.T) {
	v := newTown(t)
	v.keys["c"].keys = []string{"old"}
	v.before = func(to string, _ election.Call) (election.CallAnswer, error, bool) {
		return election.CallAnswer{}, context.DeadlineExceeded, to == "d"
	}
	use := func(rest string) (int, string) {
		return v.own.do(t, http.MethodPost, "/v1/keys", `{"use":"older"`+rest+`}`)
	}
	status, text := use("")
	if status != 409 || !strings.Contains(text, `"key_missing"`) || !strings.Contains(text, "missing at c;") || !strings.Contains(text, "d did not answer and may lack it") {
		t.Errorf("%d %s", status, text)
	}
	v.have(t, "refused", map[string]string{"a": "old older"})
	if status, text := use(`,"force":true`); status != 200 {
		t.Errorf("forced: %d %s", status, text)
	}
	if status, text := use(""); status != 200 {
		t.Errorf("the key in use: %d %s", status, text)
	}
	v.before, v.keys["a"].keys, v.keys["c"].keys = nil, []string{"old", "older"}, []string{"old", "older"}
	if status, text := use(""); status != 200 {
		t.Errorf("all have it: %d %s", status, text)
	}
	if status, _ := v.own.do(t, http.MethodPost, "/v1/keys", `{"use":"none"}`); status != 404 {
		t.Errorf("an unknown key: %d", status)
	}
}
