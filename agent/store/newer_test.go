package store_test

import (
	"crypto/sha256"
	"encoding/binary"
)

// newer returns a state file of the next format. Package codec documents the layout.
func newer() []byte {
	head := binary.BigEndian.AppendUint32(nil, 2)
	head = binary.BigEndian.AppendUint64(head, 0)
	sum := sha256.Sum256(head)
	return append(append([]byte("doyen-state\n"), head...), sum[:]...)
}
