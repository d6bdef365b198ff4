// Package client asks an agent over its Unix socket which host leads, which members there are and what
// changes. It can make the agent resign, hand over, drain or leave, and campaigns for this program.
//
// A program that should act on one host at a time calls Run or Campaign. Run calls a function whenever the
// program leads. Campaign returns once the program leads. Both keep the deadline with this process's
// own clock. So the context that they give ends with the lease even if the agent is frozen or dead. If
// the agent dies while the program leads, and starts again in time, the leadership and its context go
// on. Neither call can make the program obey its context: a program that was stopped and continued, or
// that checks too rarely, acts late. Only a resource that refuses old tokens is safe from late acts.
//
// The package guarantees that every answer came from the agent that listens at the socket. Nothing that
// an agent sends makes it panic or read without bound. Where a caller needs details, an error has one of
// two types: *APIError if the agent refused, *UnreachableError if no answer came, with the cause and what
// to do.
//
// The package can't guarantee that an answer is still true when it is read: the lease may end just after
// the agent has answered. api.Election shows how long the answer holds (LeaseRemainingMS, counted from the
// answer; ValidUntilBoottimeNS, comparable on the same host). IsLeader checks this. A call that changes
// something may have taken effect although no answer came. Only Campaign, Run, Leadership.Write and the calls
// that give receipts repeat such a call.
//
// A call waits no longer than its context allows.
package client
