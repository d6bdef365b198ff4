package serve

import (
	"net/http"

	"github.com/doyen-election/doyen/api"
)

// Keyring is the agent's cluster keys.
type Keyring interface {
	Keys() []api.Key
	// ChangeKeys carries out one change, or returns why it can't.
	ChangeKeys(api.KeysRequest) *api.ErrorDetail
}

func (s *Server) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, api.Keys{Keys: s.Keyring.Keys()})
}

func (s *Server) changeKeys(w http.ResponseWriter, r *http.Request) {
	var request api.KeysRequest
	if !body(w, r, &request) {
		return
	}
	if refused := s.Keyring.ChangeKeys(request); refused != nil {
		refuse(w, refused)
		return
	}
	s.keys(w, r)
}
