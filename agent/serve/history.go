package serve

import (
	"net/http"
	"strconv"

	"github.com/doyen-election/doyen/agent/history"
	"github.com/doyen-election/doyen/api"
)

// defaultHistory is how many transitions an answer has by default.
const defaultHistory = 100

// history answers GET /v1/history?election=&limit=. An election that never had a
// candidate has an empty history, which is not an error.
func (s *Server) history(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	of := query.Get("election")
	if of != "" {
		if _, ok := validName(w, of); !ok {
			return
		}
	}
	limit := defaultHistory
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > history.MaxListed {
			fail(w, http.StatusBadRequest, api.ErrorDetail{Code: api.CodeBadRequest,
				Message: "limit must be an integer from 1 to " + strconv.Itoa(history.MaxListed)})
			return
		}
		limit = n
	}
	answer(w, api.History{History: s.History(of, limit)})
}
