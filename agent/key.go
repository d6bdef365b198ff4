package agent

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/membership"
)

const (
	maxKeyFile = 4096 // bytes read of a key file
	maxKeys    = 8    // keys of one agent
)

// gossipKeys returns the keys that encrypt gossip, the one in use first. It returns none if
// other agents are to join without a key file, which is allowed on loopback.
func gossipKeys(c Config, logger *slog.Logger) ([][]byte, error) {
	if c.KeyFile != "" {
		keys, bad := ReadKeys(c.KeyFile)
		if bad != nil {
			return nil, bad
		}
		return keys, nil
	}
	others := slices.ContainsFunc(c.Voters, func(v string) bool { return v != c.Name })
	if len(c.Join) == 0 && !others {
		// No other agent is to join. A random key for this process run keeps the other users of this
		// host out.
		key := make([]byte, membership.KeySize)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("create a key for gossip: %w", err)
		}
		return [][]byte{key}, nil
	}
	logger.Warn("there is no cluster key: every user of this host can start an agent that joins, becomes a candidate and leads; give all agents the same --key-file")
	return nil, nil
}

// ReadKeys reads the cluster keys, 1 to 8, from a file that only its owner can read, or that root
// gave to this agent's group. Each line
// is one key: the standard base64 of 32 random bytes. The first key is the one to use; the
// others are accepted too, while the cluster's key is changed. All returned keys differ.
func ReadKeys(path string) ([][]byte, *ConfigError) {
	const hint = "each line of it is a key as `doyen keygen` writes it: copy the file of an agent that works"
	info, err := os.Stat(path) // before opening: opening a pipe would block
	switch {
	case err != nil:
		return nil, configError("key-file", keyFileHint(err), "%v", err)
	case !info.Mode().IsRegular():
		return nil, configError("key-file", hint, "%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0 && !handedByRoot(info):
		return nil, configError("key-file", "run: chmod 600 "+path, "%s can be read by others (mode %04o)", path, info.Mode().Perm())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, configError("key-file", keyFileHint(err), "%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, configError("key-file", keyFileHint(err), "%v", err)
	}
	var keys [][]byte
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, err := parseKey(line)
		if err != nil {
			return nil, configError("key-file", hint, "%s %v", path, err)
		}
		if !holds(keys, key) {
			keys = append(keys, key)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, configError("key-file", hint, "%s has no key", path)
	case len(keys) > maxKeys || len(text) > maxKeyFile:
		return nil, configError("key-file", "keep only those that are needed", "%s holds more than %d keys", path, maxKeys)
	}
	return keys, nil
}

// handedByRoot reports whether root, for an agent of another user, gave the file to one of that
// agent's groups to read, and to nobody else. So Kubernetes hands over a secret.
func handedByRoot(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid != 0 || os.Geteuid() == 0 || info.Mode().Perm()&0o037 != 0 {
		return false
	}
	groups, _ := os.Getgroups()
	return slices.Contains(append(groups, os.Getegid()), int(owner.Gid))
}

// keyFileHint is what to do about a key file that can't be read. It proposes a new key only
// for the first host: agents with different keys do not meet.
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
	if n := len(key); n != membership.KeySize {
		return nil, fmt.Errorf("holds a key of %d bytes, expected %d", n, membership.KeySize)
	}
	return key, nil
}

func holds(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}
