// Package client asks an agent over its Unix socket who leads, who the members are and
// what changes; makes it resign, hand over, drain or leave; and campaigns on behalf of
// this program.
//
// A program that is to act on one host at a time calls Run, which calls the program back
// whenever it leads, or Campaign, which returns when it leads. Both keep the deadline by this
// process's own clock, so the context that they give ends with the lease even if the agent is
// frozen or gone. If the agent dies while they lead and is started again in time, they resume,
// and the context goes on. They can't make the program obey its context: a program that was
// stopped and continued, or that checks too rarely, acts late. Only a resource that refuses
// old tokens is safe against that.
//
// The package guarantees that every answer came from the agent that listens at the socket, and
// that nothing an agent sends makes it panic or read without bound. Where the caller needs
// facts, an error has one of two types: *APIError when the agent refused, *UnreachableError
// when there was no answer, with the cause and what to do about it.
//
// It does not guarantee that an answer is still true when it is read: the lease may end just
// after the agent has answered. api.Election has how long the answer holds (LeaseRemainingMS,
// counted from the answer; ValidUntilBoottimeNS, comparable on the same host), and IsLeader
// takes that into account. Only Campaign and Run try again: a call that changes something may
// have taken effect without an answer.
//
// Calls wait as long as their context lets them.
package client
