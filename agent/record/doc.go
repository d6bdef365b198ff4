// Package record is memory that outlives a life (one process run) of the agent, but not the kernel. It is
// a log in a file on a tmpfs, beside the socket. With it the next life continues as the same holder
// (docs/guarantees.md, "Lives").
//
// It guarantees that a step is on record completely or not at all. One write appends one item. An
// item is incomplete if its life died during the write, and is then cut off. A record is refused as
// a whole if it is damaged in any other way, if its header names another boot, time namespace,
// agent, format or file, or if it is from before a suspend of the host (K3, K7). Two processes never
// have the same record at once, because a life holds the kernel's lock on the file (K2). No life
// begins with a destroyed record (K6). A failed write is an error that ends the record.
// Memory for later writes is allocated in advance, so that failed writes are rare.
//
// It does not guarantee that there is a record. Without one, the next life begins a new lineage,
// which waits for the leases of the former one to end. The content is trusted, because only the
// agent's user and root may write it. If one of them cuts the file off between two items, the next life
// does not notice. The package does not check what its callers record.
//
// # Format 2
//
// The file starts with "doyenrec" and the format, which has 4 bytes. Numbers are little endian.
// Then come the items. Each has its length, its CRC-32C, the CRC-32C of these 8 bytes (4 bytes
// each), and a CBOR map of what has changed (log.go). The first item has everything. At 1 MiB the
// log is rewritten into another file, which is complete and locked before it gets the name. Then
// the old file is emptied. Format 1, of 0.3.0, was a mapped file.
package record
