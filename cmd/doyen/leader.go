package main

import (
	"errors"
	"fmt"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

func leader(i *invocation) error {
	name := i.election()
	ctx := i.question()
	e, err := i.client().Election(ctx, name, client.ElectionOptions{})
	if err != nil {
		if refused(err, api.CodeNotFound, api.CodeNoQuorum) {
			return &failure{code: exitNone, what: name + " has no leader", err: err, hint: "`doyen elections` lists the elections"}
		}
		return fmt.Errorf("ask who leads %s: %w", name, err)
	}
	switch {
	case e.Leader != nil && i.Bool("meta") && e.Leader.Meta == "":
		return &failure{code: exitNone, what: fmt.Sprintf("%s leads %s, but its meta is not known", e.Leader.Name, name), hint: "its program reports nothing about itself, or it was elected just now: ask again in a moment"}
	case e.Leader != nil && i.Bool("meta"):
		return i.answer(printable(e.Leader.Meta) + "\n")
	case e.Leader != nil:
		return i.answer(printable(e.Leader.Name) + "\n")
	case i.json:
		if err := i.answer(""); err != nil {
			return err
		}
		return silentExit{exitNone}
	}
	why, hint := leaderless(e)
	if e.State == api.StateNoQuorum {
		switch a, err := i.client().Agent(ctx); {
		case err != nil || !a.Quorum.Enabled:
		case a.Quorum.Voters == 0:
			why, hint = "the agents have not agreed on the voters yet", "`doyen status` shows which agents this one waits for"
		case a.UptimeMS < 2*a.LeaseMS:
			why, hint = "this host's agent has just started, and connects to the voters", "ask again in a moment"
		}
	}
	return &failure{code: exitNone, what: name + " has no leader", err: errors.New(why), hint: hint}
}

// isLeader exits with 0 if this host leads, and with 1 if another host does. Scripts rely on 0 and 1, so every
// other outcome has another code.
func isLeader(i *invocation) error {
	name := i.election()
	ctx := i.question()
	leads, e, err := i.client().IsLeader(ctx, name)
	switch {
	case refused(err, api.CodeNotFound):
		return &failure{code: exitNone, what: "ask who leads " + name, err: errors.New("nobody knows an election of that name"),
			hint: "if the name is right, it has no candidate yet: `doyen elections` lists the elections"}
	case refused(err, api.CodeNoQuorum):
		return silentExit{exitNone}
	case err != nil:
		_, hint := classify(err)
		return &failure{code: exitUnreachable, what: "ask who leads " + name, err: err, hint: hint}
	case leads:
		return nil
	case e.IsLeader || e.Leader == nil || e.State == api.StateNoQuorum: // IsLeader is true although leads is false if the answer took longer than the rest of the lease
		return silentExit{exitNone}
	}
	return silentExit{exitFailed}
}

// leaderless returns why no agent leads, and what to do.
func leaderless(e api.Election) (why, hint string) {
	switch e.State {
	case api.StateNoQuorum:
		return "a majority of the voters can't be reached", "`doyen voters` shows which ones are missing"
	case api.StateIdle:
		return "it has no candidates", "an agent that is drained, unreachable, has priority 0 or --candidate=false does not count, nor one that may not lead it: `doyen members` shows which are drained, `doyen drain off NAME` ends it, `doyen settings` shows who may lead"
	}
	return "an election is under way", "ask again in a moment, or follow it with `doyen watch " + e.Election + "`"
}
