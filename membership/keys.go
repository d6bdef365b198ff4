package membership

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// errNoKey refuses a change of keys where there are none.
var errNoKey = errors.New("change cluster keys: this agent gossips without one")

// keyring holds memberlist's keys; one goroutine at a time changes them. A change takes
// effect at once: the next message is encrypted with the key in use then, and all keys are
// tried on what arrives.
type keyring struct {
	guard   *guard // opens what comes in before memberlist does, by the same keys
	mu      sync.Mutex
	ring    *memberlist.Keyring       // nil: no encryption
	removed atomic.Pointer[time.Time] // when a key was last removed, perhaps to shut somebody out; nil: never
}

// newKeyring makes a keyring that encrypts with the first key, and accepts the others too.
func newKeyring(g *guard, first []byte, others [][]byte) (*keyring, error) {
	if len(first) == 0 {
		return &keyring{guard: g}, nil
	}
	ring, err := memberlist.NewKeyring(others, first)
	if err != nil {
		return nil, fmt.Errorf("use cluster key: %w", err)
	}
	if err := g.setKeys(ring.GetKeys()); err != nil {
		return nil, fmt.Errorf("use cluster key: %w", err)
	}
	return &keyring{guard: g, ring: ring}, nil
}

// Keys returns the cluster keys, the one in use first; none without encryption.
func (m *Membership) Keys() [][]byte {
	if m.keys.ring == nil {
		return nil
	}
	m.keys.mu.Lock()
	defer m.keys.mu.Unlock()
	var keys [][]byte
	for _, k := range m.keys.ring.GetKeys() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// SetKeys replaces the cluster keys: the first is used from now on, all are accepted.
// Each has 32 bytes. An agent that started without a key can't get one: all its peers
// would need the key at the same moment.
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
	m.keys.mu.Lock()
	defer m.keys.mu.Unlock()
	return m.keys.set(keys)
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
	foreign := func(h []byte) bool { return !contains(keys, h) }
	less := slices.ContainsFunc(k.ring.GetKeys(), foreign)
	err := k.add(keys)
	if err == nil {
		err = k.ring.UseKey(keys[0])
	}
	if err == nil {
		err = k.guard.setKeys(keys)
	}
	// Memberlist removes a key by moving the keys behind it, in a slice that it may be using
	// to decrypt at that moment. So keys are removed from the end, where nothing moves, and
	// the keys to keep are added again. In between, messages made with them are not
	// understood; gossip repeats itself.
	for held := k.ring.GetKeys(); err == nil && slices.ContainsFunc(held, foreign); held = k.ring.GetKeys() {
		err = k.ring.RemoveKey(held[len(held)-1])
	}
	if now := time.Now(); err == nil && less {
		k.removed.Store(&now)
	}
	if err = cmp.Or(err, k.add(keys)); err != nil {
		return fmt.Errorf("change cluster keys: %w", err)
	}
	return nil
}

func (k *keyring) add(keys [][]byte) error {
	for _, key := range keys {
		if err := k.ring.AddKey(key); err != nil {
			return err
		}
	}
	return nil
}

func contains(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}
