package bully

// Remembered is how many entries about other agents this agent holds in memory.
func (b *Bully) Remembered() int { return len(b.peers) + len(b.deferring) }
