package settings

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// Keyring changes the cluster keys while the agent runs, one change at a time. It changes the key
// file before the keys in use, so that a restart keeps the change.
type Keyring struct {
	mu     sync.Mutex
	path   string // path of the key file; empty: this agent has no key file
	gossip gossip
	logger *slog.Logger
}

type gossip interface {
	Keys() [][]byte
	SetKeys([][]byte) error
}

// NewKeyring returns the keys of an agent with that key file; empty: it has no key file.
func NewKeyring(path string, gossip gossip, logger *slog.Logger) *Keyring {
	return &Keyring{path: path, gossip: gossip, logger: logger}
}

// Reload replaces the keys by those of a key file, which becomes the agent's key file. It reports
// whether the path or the keys differ from before.
func (k *Keyring) Reload(path string, keys [][]byte) (changed bool, err error) {
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

// fingerprint identifies a key without revealing it: the first 8 bytes of its SHA-256, in hexadecimal.
func fingerprint(key []byte) string {
	sum := sha256.Sum256(append([]byte("doyen cluster key "), key...))
	return hex.EncodeToString(sum[:8])
}

// Keys returns the keys of this agent, the one in use first.
func (k *Keyring) Keys() []api.Key {
	if k.path == "" {
		return []api.Key{} // the agent has no key, or a random one that nobody needs to know
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

func newKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails, by its documentation
	return key
}

// NewKey makes a key, as a line of a key file holds it.
func NewKey() string { return base64.StdEncoding.EncodeToString(newKey()) }

// NewKey makes a key and does not use it yet.
func (k *Keyring) NewKey() (text, print string) {
	key := newKey()
	return base64.StdEncoding.EncodeToString(key), fingerprint(key)
}

// ChangeKeys carries out one change, or returns why it can't. Repeating a change that adds or uses a key
// succeeds, and changes nothing.
func (k *Keyring) ChangeKeys(r api.KeysRequest) *api.ErrorDetail {
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

// changed returns the keys as they are after the request.
func changed(held [][]byte, r api.KeysRequest) ([][]byte, *api.ErrorDetail) {
	empty := func(s string) bool { return s == "" }
	if asked := slices.DeleteFunc([]string{r.Add, r.Use, r.Remove}, empty); len(asked) != 1 {
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
	i := slices.IndexFunc(held, func(key []byte) bool { return fingerprint(key) == r.Use+r.Remove }) // the request has either Use or Remove
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

// keep replaces the key file. After a crash the file has the old keys or the new ones. If the file was edited since
// the agent read it, keep refuses to replace it, since the new keys in it may exist nowhere else.
func (k *Keyring) keep(held, next [][]byte) error {
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
	err = replaceKeyFile(path, text.String())
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w; the agent must be able to write to the key file's directory", err)
	}
	return err
}

// replaceKeyFile writes a new file beside the old one, with the same owner, and renames it.
func replaceKeyFile(path, text string) error {
	temp, err := writeBeside(path, text)
	if err == nil {
		err = os.Rename(temp, path)
	}
	switch {
	case err == nil:
		err = store.SyncDir(filepath.Dir(path))
	case temp != "":
		err = errors.Join(err, os.Remove(temp))
	}
	return wrap.Error(err, "replace the key file")
}

// writeBeside writes the text durably to a new file in path's directory, with path's owner and mode
// 0600. It returns the new file's path if it made the file, even with an error.
func writeBeside(path, text string) (temp string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".doyen-key-*") // CreateTemp uses mode 0600
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

const (
	keySize    = 32   // bytes of a key
	maxKeyFile = 4096 // bytes read of a key file
	maxKeys    = 8    // keys of one agent
)

// GossipKeys returns the keys that encrypt gossip, the one in use first. It returns none if this agent has no
// key file and other agents may join it. Validate allows that only on loopback.
func GossipKeys(c Config, logger *slog.Logger) ([][]byte, error) {
	if c.KeyFile != "" {
		keys, bad := ReadKeys(c.KeyFile)
		if bad != nil {
			return nil, bad
		}
		return keys, nil
	}
	others := slices.ContainsFunc(c.Voters, func(v string) bool { return v != c.Name })
	if len(c.Join) == 0 && !others {
		// No other agent may join. A random key for this process run keeps out the other users of
		// this host.
		return [][]byte{newKey()}, nil
	}
	logger.Warn("there is no cluster key: every user of this host can start an agent that joins, becomes a candidate and leads; give all agents the same --key-file")
	return nil, nil
}

// ReadKeys reads the cluster keys, 1 to 8, from a file that only its owner can read, or that root
// has made readable for this agent's group. Each line is one key: the standard base64 of 32 random
// bytes. The first key is the one to use. The others are accepted too, so that the cluster's key
// can be changed. All returned keys differ.
func ReadKeys(path string) ([][]byte, *Error) {
	const hint = "each line of it is a key as `doyen keygen` writes it: copy the file of an agent that works"
	info, err := os.Stat(path) // before the file is opened, since opening a pipe would block
	switch {
	case err != nil:
		return nil, Errorf("key-file", keyFileHint(err), "%v", err)
	case !info.Mode().IsRegular():
		return nil, Errorf("key-file", hint, "%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0 && !handedByRoot(info):
		return nil, Errorf("key-file", "run: chmod 600 "+path, "%s can be read by others (mode %04o)", path, info.Mode().Perm())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Errorf("key-file", keyFileHint(err), "%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, Errorf("key-file", keyFileHint(err), "%v", err)
	}
	var keys [][]byte
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, err := parseKey(line)
		if err != nil {
			return nil, Errorf("key-file", hint, "%s %v", path, err)
		}
		if !holds(keys, key) {
			keys = append(keys, key)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, Errorf("key-file", hint, "%s has no key", path)
	case len(keys) > maxKeys || len(text) > maxKeyFile:
		return nil, Errorf("key-file", "keep only those that are needed", "%s holds more than %d keys", path, maxKeys)
	}
	return keys, nil
}

// handedByRoot reports whether the file is root's and readable by one of this agent's groups, but
// by nobody else, while the agent runs as another user. This is how Kubernetes provides a secret.
func handedByRoot(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid != 0 || os.Geteuid() == 0 || info.Mode().Perm()&0o037 != 0 {
		return false
	}
	groups, _ := os.Getgroups()
	return slices.Contains(append(groups, os.Getegid()), int(owner.Gid))
}

// keyFileHint is what to do about a key file that can't be read. It proposes a new key only for the
// first host, since agents with different keys can't form one cluster.
func keyFileHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "copy the cluster's key file here, mode 0600; only on the first host make one with `doyen keygen --out FILE`"
	case errors.Is(err, fs.ErrPermission):
		return "make it, and the directories above it, readable for the agent's user"
	}
	return "check the file and its disk, or copy the cluster's key file here again"
}

// parseKey reads one key, as a line of a key file holds it.
func parseKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("is not valid base64")
	}
	if n := len(key); n != keySize {
		return nil, fmt.Errorf("holds a key of %d bytes, expected %d", n, keySize)
	}
	return key, nil
}

func holds(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}
