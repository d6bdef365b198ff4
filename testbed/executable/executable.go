// Package executable writes files that tests execute. The kernel does not execute a file that any process has
// open for writing (ETXTBSY). So while the package writes, this process starts no child that inherits the file.
package executable

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Write is os.WriteFile for a file that its owner may execute.
func Write(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}

// Script returns a command that runs a shell line. For root it is a script: doyen as root refuses a bare line.
func Script(t *testing.T, line string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return line
	}
	path := filepath.Join(t.TempDir(), "script")
	if err := Write(path, []byte(line)); err != nil {
		t.Fatal(err)
	}
	return "/bin/sh " + path
}
