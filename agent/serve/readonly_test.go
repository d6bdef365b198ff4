package serve

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestAReadOnlyListenerAnswersGETAndNoWatch(t *testing.T) {
	reached := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for call, want := range map[[2]string]int{
		{"GET", "/v1/members"}:                   http.StatusOK,
		{"HEAD", "/v1/members"}:                  http.StatusOK,
		{"POST", "/v1/drain"}:                    http.StatusForbidden,
		{"PUT", "/v1/voters"}:                    http.StatusForbidden,
		{"DELETE", "/v1/members"}:                http.StatusForbidden,
		{"POST", "/v1/elections/default/resign"}: http.StatusForbidden,
		{"GET", "/v1/elections/default/watch"}:   http.StatusForbidden,
	} {
		w := httptest.NewRecorder()
		readOnly(reached).ServeHTTP(w, httptest.NewRequest(call[0], call[1], nil))
		if w.Code != want {
			t.Errorf("%s %s: %d, want %d", call[0], call[1], w.Code, want)
		}
	}
}

func TestASocketHasTheModeThatIsConfigured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := Share(path, 0o600, os.Getegid()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info.Mode(), err)
	}
}
