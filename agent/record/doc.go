// Package record is memory that outlives a life of the agent and dies with the kernel: a
// mapped file on a tmpfs, locked by the life, by which the next one goes on as the same
// holder (DESIGN.md, "Lives").
package record
