package agent

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/membership"
)

const (
	maxKeyFile = 4096 // bytes read of a key file
	maxKeys    = 8    // of one agent
)

// ReadKeys reads the cluster keys: one a line, each the standard base64 of 32
// random bytes, in a file that only its owner can read. The first is the one to
// use; the others are accepted as well, while the cluster's key is changed. It
// returns the bytes of each, 1 to 8 of them, no two the same.
func ReadKeys(path string) ([][]byte, *ConfigError) {
	const hint = "make one with `doyen keygen`"
	info, err := os.Stat(path) // before opening: opening a pipe would block
	switch {
	case err != nil:
		return nil, configError("key-file", hint, "%v", err)
	case !info.Mode().IsRegular():
		return nil, configError("key-file", hint, "%s is no regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, configError("key-file", "run: chmod 600 "+path, "%s can be read by others (mode %04o)", path, info.Mode().Perm())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, configError("key-file", hint, "%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, configError("key-file", hint, "%v", err)
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
		return nil, configError("key-file", hint, "%s holds no key", path)
	case len(keys) > maxKeys || len(text) > maxKeyFile:
		return nil, configError("key-file", "leave the ones that are needed", "%s holds more than %d keys", path, maxKeys)
	}
	return keys, nil
}

// parseKey reads one key as a key file writes it.
func parseKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("holds no base64")
	}
	if n := len(key); n != membership.KeySize {
		return nil, fmt.Errorf("holds a key of %d bytes, want %d", n, membership.KeySize)
	}
	return key, nil
}

func holds(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}
