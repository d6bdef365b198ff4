package agent

import (
	"encoding/base64"
	"io"
	"os"
	"strings"
)

// maxKeyFile bounds what is read of a key file, in bytes.
const maxKeyFile = 4096

// ReadKey reads a cluster key: one line, the standard base64 of 16, 24 or 32
// random bytes, in a file that only its owner can read. It returns the bytes.
func ReadKey(path string) ([]byte, *ConfigError) {
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
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, configError("key-file", hint, "%v", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, configError("key-file", hint, "%s holds no base64", path)
	}
	if n := len(key); n != 16 && n != 24 && n != 32 {
		return nil, configError("key-file", hint, "%s holds %d bytes, a key has 16, 24 or 32", path, n)
	}
	return key, nil
}
