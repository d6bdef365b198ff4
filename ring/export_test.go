package ring

// Remembered is how many entries about other agents this agent holds in memory.
func (r *Ring) Remembered() int { return len(r.holders) + len(r.hops) + len(r.passages) }

const HopsPerHeartbeat = hopsPerHeartbeat
