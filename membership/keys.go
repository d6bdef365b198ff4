package membership

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"github.com/hashicorp/memberlist"
)

// errNoKey refuses a change of keys at an agent that has none.
var errNoKey = errors.New("change cluster keys: this agent gossips without one")

// keyring holds the keys. One goroutine at a time changes them, and a change takes effect at once: the
// next message is encrypted with the new first key, and each message that arrives is tried with all keys.
// Memberlist's own ring keeps removed keys, since it can't remove one safely while it decrypts. But the
// guard does not pass a message made with a removed key.
type keyring struct {
	guard   *guard
	mu      sync.Mutex
	keys    [][]byte                  // the first one encrypts
	ring    *memberlist.Keyring       // nil: no encryption
	removed atomic.Pointer[time.Time] // when a key was last removed, perhaps to exclude somebody; nil: never
}

// newKeyring makes a keyring that encrypts with the first key, and accepts the others too.
func newKeyring(g *guard, first []byte, others [][]byte) (*keyring, error) {
	if len(first) == 0 {
		return &keyring{guard: g}, nil
	}
	ring, err := memberlist.NewKeyring(others, first)
	if err == nil {
		err = g.setKeys(ring.GetKeys())
	}
	if err != nil {
		return nil, fmt.Errorf("use cluster key: %w", err)
	}
	return &keyring{guard: g, keys: ring.GetKeys(), ring: ring}, nil
}

// Keys returns the cluster keys, the one that encrypts first. It returns none without encryption.
func (m *Membership) Keys() [][]byte {
	if m.keys.ring == nil {
		return nil
	}
	m.keys.mu.Lock()
	defer m.keys.mu.Unlock()
	return each.Of(m.keys.keys, bytes.Clone)
}

// SetKeys replaces the cluster keys: the first encrypts from now on, and all are accepted. Each has 32
// bytes. An agent that started without a key can't get one, since all its peers would need the key at the
// same moment.
func (m *Membership) SetKeys(keys [][]byte) error {
	if m.keys.ring == nil {
		return errNoKey
	}
	if len(keys) == 0 {
		return errors.New("change cluster keys: at least one must stay")
	}
	for _, k := range keys {
		if err := CheckKey(k); err != nil {
			return fmt.Errorf("change cluster keys: %w", err)
		}
	}
	return wrap.Error(m.keys.set(keys), "change cluster keys")
}

// CheckKey reports a key of the wrong length: only AES-256 is used.
func CheckKey(key []byte) error {
	if len(key) != KeySize {
		return fmt.Errorf("cluster key has %d bytes, expected %d: `doyen keygen` makes one", len(key), KeySize)
	}
	return nil
}

// KeySize is how many bytes a cluster key has.
const KeySize = 32

func (k *keyring) set(keys [][]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	clones := each.Of(keys, bytes.Clone)
	for _, key := range clones {
		if err := k.ring.AddKey(key); err != nil {
			return err
		}
	}
	if err := k.ring.UseKey(keys[0]); err != nil {
		return err
	}
	if err := k.guard.setKeys(keys); err != nil {
		return err
	}
	for _, old := range k.keys {
		if now := time.Now(); !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, old) }) {
			k.removed.Store(&now)
		}
	}
	k.keys = clones
	return nil
}
