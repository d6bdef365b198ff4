package agent

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/membership"
)

// keyring changes the cluster keys while the agent runs, one change at a time. It changes the
// key file first, so that a restart keeps the keys in use.
type keyring struct {
	mu     sync.Mutex
	path   string // of the key file; empty: this agent has none
	gossip interface {
		Keys() [][]byte
		SetKeys([][]byte) error
	}
	logger *slog.Logger
}

// Reload replaces the keys by those of a key file, which is the agent's from now on. It reports
// whether there is any difference.
func (k *keyring) Reload(path string, keys [][]byte) (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.EqualFunc(k.gossip.Keys(), keys, bytes.Equal) {
		changed = k.path != path
		k.path = path
		return changed, nil
	}
	if err := k.gossip.SetKeys(keys); err != nil {
		return false, err
	}
	k.path = path
	k.logger.Info("cluster keys read again", "in_use", fingerprint(keys[0]), "accepted", len(keys))
	return true, nil
}

// fingerprint names a key without revealing it: the first 8 bytes of its SHA-256, in hexadecimal.
func fingerprint(key []byte) string {
	sum := sha256.Sum256(append([]byte("doyen cluster key "), key...))
	return hex.EncodeToString(sum[:8])
}

// Keys returns the keys of this agent, the one in use first.
func (k *keyring) Keys() []api.Key {
	if k.path == "" {
		return []api.Key{} // the agent has a random key, which nobody needs to know, or none
	}
	return DescribeKeys(k.gossip.Keys())
}

// DescribeKeys describes keys without revealing them. The first is the one in use.
func DescribeKeys(keys [][]byte) []api.Key {
	list := []api.Key{}
	for i, key := range keys {
		list = append(list, api.Key{Fingerprint: fingerprint(key), InUse: i == 0})
	}
	return list
}

// NewKey makes a key, which is not used yet.
func (k *keyring) NewKey() (text, print string) {
	key := make([]byte, membership.KeySize)
	_, _ = rand.Read(key) // never fails, by its documentation
	return base64.StdEncoding.EncodeToString(key), fingerprint(key)
}

// ChangeKeys carries out one change, or returns why it can't. A change that was made before
// succeeds.
func (k *keyring) ChangeKeys(r api.KeysRequest) *api.ErrorDetail {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == "" {
		return refusal(api.CodeBadRequest, "this agent runs without a cluster key: start all agents with --key-file")
	}
	held := k.gossip.Keys()
	next, refused := changed(held, r)
	if refused != nil || slices.EqualFunc(held, next, bytes.Equal) {
		return refused
	}
	if err := k.keep(held, next); err != nil {
		return refusal(api.CodeUnavailable, "nothing was changed: "+err.Error())
	}
	if err := k.gossip.SetKeys(next); err != nil {
		return refusal(api.CodeUnavailable, err.Error()+"; the key file was changed, and takes effect at the next start")
	}
	k.logger.Info("cluster keys changed", "in_use", fingerprint(next[0]), "accepted", len(next))
	return nil
}

func refusal(code, message string) *api.ErrorDetail {
	return &api.ErrorDetail{Code: code, Message: message}
}

// changed returns the keys after the request.
func changed(held [][]byte, r api.KeysRequest) ([][]byte, *api.ErrorDetail) {
	asked := 0
	for _, s := range []string{r.Add, r.Use, r.Remove} {
		if s != "" {
			asked++
		}
	}
	if asked != 1 {
		return nil, refusal(api.CodeBadRequest, `name one key, as {"add":"BASE64"}, {"use":"FINGERPRINT"} or {"remove":"FINGERPRINT"}`)
	}
	if r.Add != "" {
		key, err := parseKey(r.Add)
		switch {
		case err != nil:
			return nil, refusal(api.CodeBadRequest, "the text to add "+err.Error())
		case holds(held, key):
			return held, nil
		case len(held) >= maxKeys:
			return nil, refusal(api.CodeBadRequest, fmt.Sprintf("there are %d keys already: remove those that no agent uses", len(held)))
		}
		return append(slices.Clone(held), key), nil
	}
	i := slices.IndexFunc(held, func(key []byte) bool { return fingerprint(key) == r.Use+r.Remove }) // Use or Remove is empty
	if i < 0 {
		return nil, refusal(api.CodeNotFound, "no key has this fingerprint; GET /v1/keys lists the keys")
	}
	if r.Use != "" {
		key := held[i]
		return slices.Insert(slices.Delete(slices.Clone(held), i, i+1), 0, key), nil
	}
	if i == 0 {
		return nil, refusal(api.CodeInUse, "this key is in use: use another one first, on every agent")
	}
	return slices.Delete(slices.Clone(held), i, i+1), nil
}

// keep replaces the key file. After a crash the file holds the old keys or the new ones. A
// file that was edited since the start is not replaced: its keys may exist nowhere else.
func (k *keyring) keep(held, next [][]byte) error {
	path, err := filepath.EvalSymlinks(k.path)
	if err != nil {
		return fmt.Errorf("find the key file: %w", err)
	}
	there, bad := ReadKeys(path)
	if bad != nil {
		return fmt.Errorf("read the key file: %w", bad)
	}
	if !slices.EqualFunc(there, held, bytes.Equal) {
		return fmt.Errorf("%s differs from the keys that this agent uses: it was edited since it was read; run `doyen reload`, or restore the file", path)
	}
	var text strings.Builder
	for _, key := range next {
		text.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	}
	if err := replaceKeyFile(path, text.String()); err != nil {
		if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("%w; the agent must be able to write to the key file's directory", err)
		}
		return err
	}
	return nil
}

// replaceKeyFile writes a new file with the same owner beside the old one, and renames it.
func replaceKeyFile(path, text string) error {
	temp, err := writeBeside(path, text)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		if temp != "" {
			err = errors.Join(err, os.Remove(temp))
		}
		return fmt.Errorf("replace the key file: %w", err)
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("replace the key file: %w", err)
	}
	return nil
}

// writeBeside writes the text durably to a new file in path's directory, with path's owner and
// mode 0600. If it made that file, it returns its path, even with an error.
func writeBeside(path, text string) (temp string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".doyen-key-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return f.Name(), err
		}
	}
	if _, err := f.WriteString(text); err != nil {
		return f.Name(), err
	}
	return f.Name(), f.Sync()
}

// syncFolder makes a rename in the folder outlive a crash.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
