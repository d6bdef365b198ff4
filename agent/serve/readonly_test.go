package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheAPIOverHTTPOnlyAnswersQuestionsThatEnd(t *testing.T) {
	reached := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for call, want := range map[[2]string]int{
		{"GET", "/v1/members"}:                   http.StatusOK,
		{"HEAD", "/v1/members"}:                  http.StatusOK,
		{"POST", "/v1/drain"}:                    http.StatusForbidden,
		{"PUT", "/v1/voters"}:                    http.StatusForbidden,
		{"DELETE", "/v1/members"}:                http.StatusForbidden,
		{"POST", "/v1/elections/default/resign"}: http.StatusForbidden,
		{"GET", "/v1/elections/default/watch"}:   http.StatusForbidden,
		{"GET", "/v1/elections/watch"}:           http.StatusOK,
		{"GET", "/v1/elections/watch/watch"}:     http.StatusForbidden,
	} {
		w := httptest.NewRecorder()
		readOnly(reached, false, "elsewhere").ServeHTTP(w, httptest.NewRequest(call[0], call[1], nil))
		if w.Code != want {
			t.Errorf("%s %s: %d, want %d", call[0], call[1], w.Code, want)
		}
	}
}
