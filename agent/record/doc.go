// Package record is memory that outlives a life (one process run) of the agent and dies with
// the kernel: a mapped file beside the socket. By it the next life goes on as the same holder
// (docs/architecture.md, "Lives").
//
// It guarantees that a life which dies between any two stores leaves each half of each row as it
// was before or as it was to be, never a mixture. A record is refused as a whole if it is damaged,
// or if its header names another boot, time namespace, agent, format or file, or if it is from
// before a suspend of the host (K3, K7). Two processes never have one record at once, because a
// life holds the kernel's lock on the file (K2). No life begins with a destroyed record (K6). No
// store ends the process: all memory is there before the record has its name, and if memory is
// taken away later, that is an error, after which there is no record.
//
// It does not guarantee that there is a record. Without one, the next life begins a new lineage,
// which waits for the leases of the former one. Its content is trusted because only the agent's
// user and root may write it. The package does not check what its writers put there.
//
// # Layout
//
// Format 1. Numbers are in the byte order of the host, which is little endian where Doyen is built
// for; places are bytes from the start.
//
//	   0    8  magic: "doyenrec"
//	   8    4  format: 1
//	  12    4  number of rows: 1024
//	  16    8  lineage ID
//	  24   16  the kernel's boot_id
//	  40    8  inode of /proc/self/ns/time; 0: the kernel has no time namespaces
//	  48    8  device of this file
//	  56    8  inode of this file, which is the lock too (flock)
//	  64    8  joined-at: Unix nanoseconds
//	  72   32  the secret of the lineage
//	 104   64  text: peer ID of the agent
//	 168    8  check over all of the above
//	 176    8  state: "recorded", or anything else when it is destroyed
//	 184  104  value: life {number, process ID, start time of the process, lease, and by how much
//	            CLOCK_BOOTTIME was ahead of the clock that stands still in a suspend}
//	 288   56  value: terms of forgotten elections {retired, spent}
//	 384 7208  value: voters {for each: text: peer ID, gossip address, stream address}
//	8192  608  row 0, and so on
//
// A row, in bytes from its start:
//
//	  0   64  text: the election's name; anything in a free row
//	 64  248  value: authority {highest, check of the name, term, until, priority and reason;
//	          if it ends, then also stop-by and text: the target}, or {0}: the row is free
//	312  280  value: actors {text of 32: campaign ID, user and process ID, start time of the
//	          process, inodes of 6 sockets, term told, term of the receipt, priority and
//	          flags, term of the hook}
//
// A text is its length in one byte, then its bytes, then zeros. Two numbers that share 8 bytes
// have 4 each, the first in the lower ones. An address has 16 bytes of IPv6 (IPv4 mapped) and
// 8 of the port. Flags: 1 the hook has finished, 2 the program has more connections.
//
// A value is a commit word and two copies. Each copy is a check and room for the most words that
// the value can have. The low 2 bytes of the commit word are how many words the value has now.
// The rest is how often it was written, never 0: even means the first copy, odd the second. The
// one store of the commit word makes the other copy the current one. The check is that of
// package leasepage with a rotation. It covers the header's words; the words of a name; and for
// a value the header's check, its place (in 8 bytes), the commit word and the words.
package record
