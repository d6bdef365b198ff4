package store

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/doyen-election/doyen/internal/base/wrap"
)

const (
	pemType        = "PRIVATE KEY" // PKCS #8, RFC 5958
	maxIdentityLen = 4096
)

// readKey reads an Ed25519 key in PEM. It refuses a file that other users can read, and does not
// simply change its mode: a user that has read the key can already act as this agent.
func readKey(dir directory) (ed25519.PrivateKey, error) {
	path := dir.path(identityFile)
	f, err := dir.Open(identityFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f, identityFile, maxIdentityLen)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, &Error{Path: path, Problem: cause(err), Err: err}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, &Error{
			Path:    path,
			Problem: fmt.Sprintf("can be read or changed by others (mode %04o)", mode),
			Hint:    "if nobody did, run: chmod 600 " + path,
		}
	}
	var parsed any
	if block, _ := pem.Decode(data); block != nil && block.Type == pemType {
		parsed, _ = x509.ParsePKCS8PrivateKey(block.Bytes) // after an error, parsed is not a key
	}
	if key, ok := parsed.(ed25519.PrivateKey); ok {
		return key, nil
	}
	return nil, &Error{
		Path:    path,
		Problem: "is not an Ed25519 private key in PEM",
		Hint: "restore it; else move the whole directory away, start with a new identity, " +
			"and replace this voter by `doyen voters replace`",
	}
}

func writeKey(dir directory, key ed25519.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	return wrap.Error(writeFile(dir, identityFile, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})), "write identity")
}
