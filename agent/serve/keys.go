package serve

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

// Keyring has the cluster keys of the agent.
type Keyring interface {
	Keys() []api.Key
	// NewKey makes a key, as base64, with its fingerprint. The agent does not accept the key yet.
	NewKey() (text, print string)
	// ChangeKeys carries out one change of the keys, or returns why it can't.
	ChangeKeys(api.KeysRequest) *api.ErrorDetail
}

// keyTime is how long one agent may take for one change of its keys. After an agent has changed this
// agent's keys, no other agent may do so for turnTime, unless only one key is left: two rotations at
// the same time could cut agents off.
const (
	keyTime  = 4 * time.Second
	turnTime = keyTime + time.Second
)

// turn records which agent may change the keys of this one, and until when no other agent may.
type turn struct {
	mu    sync.Mutex
	by    election.PeerID
	until election.Instant
}

// take reports whether an agent may change the keys now, and if so gives it the turn. If by is empty,
// a person changes the keys of this agent only: that change takes no turn.
func (t *turn) take(by election.PeerID, now election.Instant) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now < t.until && t.by != by {
		return false
	}
	if by != "" {
		t.by, t.until = by, now.Add(turnTime)
	}
	return true
}

func (t *turn) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = 0
}

type keyChanges struct {
	*Config
	ctx      context.Context
	others   others
	rotating sync.Mutex // held during a rotation of the cluster keys
	turn     turn
}

func (k *keyChanges) keys(*http.Request) (any, error) { return api.Keys{Keys: k.Keyring.Keys()}, nil }

func (k *keyChanges) changeKeys(c *call[api.KeysRequest]) (any, error) {
	from, passed := passedBy(c.Request)
	switch q := c.body; {
	case q.Rotate && passed:
		return nil, badRequest("another agent can't have this one rotate the keys: run the command here")
	case q.Rotate && q.Add+q.Use+q.Remove != "":
		return nil, badRequest(`"rotate" goes with "with", "without", "only" and "force" only`)
	case !q.Rotate && len(q.With)+len(q.Without)+len(q.Only) > 0:
		return nil, badRequest(`"with", "without" and "only" go with "rotate":true only`)
	case q.Rotate:
		return k.rotate(c.Request, q)
	}
	if !k.takeTurn(from) {
		return nil, keysBusy()
	}
	if c.body.Use != "" && !passed && !c.body.Force {
		if err := k.lacking(c.Context(), c.body.Use); err != nil {
			return nil, err
		}
	}
	if refused := k.Keyring.ChangeKeys(c.body); refused != nil {
		return nil, refused
	}
	return k.keys(c.Request)
}

// takeTurn first frees the turn if this agent has a single key, since no rotation is under way here then. Then it
// calls take.
func (k *keyChanges) takeTurn(by election.PeerID) bool {
	if len(k.Keyring.Keys()) == 1 {
		k.turn.giveBack()
	}
	return k.turn.take(by, k.Clock())
}

func keysBusy() error {
	return refusal(api.CodeBusy, "another agent is changing the keys of this one, or did so a moment ago: try again in "+turnTime.String())
}

// lacking refuses to use a key that a member lacks, or may lack, since that member would be cut
// off. It refuses nothing if this agent uses the key already, or lacks the key: ChangeKeys handles both.
func (k *keyChanges) lacking(ctx context.Context, print string) error {
	isIt := func(k api.Key) bool { return k.Fingerprint == print }
	if k.Other == nil || slices.IndexFunc(k.Keyring.Keys(), isIt) <= 0 {
		return nil
	}
	var lack, unreached []string
	for _, a := range k.others.reportOthers(ctx, false) {
		switch {
		case !a.Reached:
			unreached = append(unreached, a.Name)
		case !slices.ContainsFunc(a.Keys, isIt):
			lack = append(lack, a.Name)
		}
	}
	var why []string
	if len(lack) > 0 {
		why = append(why, "this key is missing at "+names(lack))
	}
	if len(unreached) > 0 {
		why = append(why, names(unreached)+" did not answer and may lack it")
	}
	if why == nil {
		return nil
	}
	return refusal(api.CodeKeyMissing, strings.Join(why, "; ")+
		". An agent without the key in use is cut off: add the key there first, or use it all the same with --force (\"force\":true)")
}

func names(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}
