package agent

import "github.com/doyen-election/doyen/election"

// ask is a command and the channel for its reply. Without build it only tests whether the loop
// answers.
type ask struct {
	build func(election.RequestID) election.Input
	reply chan election.Reply // has room for the reply
	gone  <-chan struct{}     // closed: the caller no longer waits
}

type pending struct {
	reply chan election.Reply
	gone  <-chan struct{} // closed: the caller no longer waits
}
