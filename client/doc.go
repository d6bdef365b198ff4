// Package client asks an agent over its Unix socket who leads, who the members are and
// what changes; makes it resign, hand over, drain or leave; and campaigns on behalf of
// this program.
//
// A program that is to act on one host at a time calls Run, which calls it back
// whenever it leads; or Campaign, which returns when it does. Both keep the deadline by
// this process's own clock, so that the context they give ends with the lease even if
// the agent is frozen or gone. If the agent dies while they lead and is started again in
// time, they resume, and the context goes on. They can't make the program obey it: one that is stopped
// and continued, or checks too rarely, acts late. Only a resource that refuses old
// tokens is safe against that.
//
// It guarantees that every answer came from the agent that listens at the socket, that
// nothing an agent sends makes it panic or read without bound, and that an error is one
// of two types where the caller needs facts: *APIError when the agent refused,
// *UnreachableError when there was no answer, with the cause and what to do about it.
//
// It does not guarantee that an answer is still true when it is read: a leader may be
// inside its lease when the agent answers and outside a moment later. api.Election has
// how long the answer holds (LeaseRemainingMS, counted from the answer;
// ValidUntilBoottimeNS, comparable on the same host), and IsLeader takes that into
// account. Nor does it retry, except in Campaign and Run: an unanswered call that
// changes something may have happened.
//
// Calls wait as long as their context lets them.
package client
