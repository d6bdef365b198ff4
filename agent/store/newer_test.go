package store_test

import (
	"crypto/sha256"
	"encoding/binary"
)

// newer returns a state file of the format after this version's, by the layout
// that package codec documents.
func newer() []byte {
	head := binary.BigEndian.AppendUint32(nil, 2)
	head = binary.BigEndian.AppendUint64(head, 0)
	sum := sha256.Sum256(head)
	return append(append([]byte("doyen-state\n"), head...), sum[:]...)
}
