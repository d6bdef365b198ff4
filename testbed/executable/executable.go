// Package executable writes files that tests execute. It guarantees that no process which starts
// meanwhile inherits the file while it is open for writing: the kernel executes no such file (ETXTBSY).
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

// Script returns a command that runs a line of the shell: root runs such a line only from a script.
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
