// Package executable writes files that tests execute. It guarantees that a process that starts meanwhile
// does not inherit the file open for writing: the kernel would then not execute the file (ETXTBSY).
package executable

import (
	"os"
	"syscall"
)

// Write is os.WriteFile for a file that its owner may execute.
func Write(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}
