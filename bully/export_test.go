package bully

// Remembered is how many things about others this agent holds in memory.
func (b *Bully) Remembered() int { return len(b.peers) + len(b.deferring) }
