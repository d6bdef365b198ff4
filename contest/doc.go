// Package contest is one election of one agent: its candidacy, what it knows of a
// leader, its bids for votes, its leadership and the end of that. It is given its facts
// and returns a verdict, and knows of no connections, gossip, disks or other elections.
package contest
