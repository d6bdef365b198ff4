// Package executable writes files that tests execute. It guarantees that no process which starts
// meanwhile inherits the file while it is open for writing: the kernel executes no such file (ETXTBSY).
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
