// Package door bounds what others may take of this agent: how much of something at once
// (Places), and how often they may do something (Pace).
//
// It guarantees that no source has more than its share, that a reserve is left to favoured
// sources, and that what it remembers is bounded. Its users say who a source is.
package door
