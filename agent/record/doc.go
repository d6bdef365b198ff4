// Package record is memory that outlives a life (one process run) of the agent and dies with
// the kernel: a log in a file on a tmpfs, beside the socket. By it the next life goes on as the
// same holder (docs/guarantees.md, "Lives").
//
// It guarantees that a step is on record as a whole or not at all: one write appends one item, and
// an item that is not complete, because its life died in the write, is cut off. A record is refused
// as a whole if it is damaged anywhere else, or if its header names another boot, time namespace,
// agent, format or file, or if it is from before a suspend of the host (K3, K7). Two processes never
// have one record at once, because a life holds the kernel's lock on the file (K2). No life begins
// with a destroyed record (K6). A write that fails is an error, after which there is no record. The
// memory for the next writes is taken beforehand, so that this is rare.
//
// It does not guarantee that there is a record. Without one, the next life begins a new lineage,
// which waits for the leases of the former one. Its content is trusted because only the agent's
// user and root may write it: a file that one of them cuts off between two items is believed. The
// package does not check what its writers put there.
//
// # Format 2
//
// The file begins with "doyenrec" and the format in 4 bytes; numbers are little endian. Items follow.
// Each is its length, its CRC-32C, the CRC-32C of these 8 bytes (4 bytes each), and a CBOR map of
// what has changed (log.go). The first one has all that is known. At 1 MiB the log is rewritten
// into another file, which is complete and locked when it takes the name; then the old one is
// emptied. Format 1, of 0.3.0, was a mapped file.
package record
