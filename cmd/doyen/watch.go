package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
)

// awayLimit is how long a watch waits for an agent that went away: longer than a keeper ever waits before it
// starts the next process.
const awayLimit = 10 * time.Second

func watch(i *invocation) error {
	name := i.election()
	p := i.palette()
	for change, err := range i.client().Follow(i.Context.Context, name, awayLimit) {
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return fmt.Errorf("watch %s: %w", name, err)
		}
		if err := i.answer(changeLine(change, p)); err != nil {
			return err
		}
	}
	return nil
}

// changeLine writes one change: its time, its election, what changed, and which agent leads since then.
func changeLine(c api.Change, p palette) string {
	kind, paint := c.Type, p.yellow
	if unknownBefore(c) {
		kind = api.ChangeSnapshot
	}
	switch c.Type {
	case api.ChangeLeader:
		paint = p.green
	case api.ChangeNoLeader:
		paint = p.red
	}
	text := changeText(c)
	if c.Reason != "" {
		text += " (" + printable(c.Reason) + ")"
	}
	return fmt.Sprintf("%s  %s  %s%s  %s\n", p.faint(c.Time.Local().Format(timeOfDay)), printable(c.Election),
		paint(printable(kind)), strings.Repeat(" ", max(0, len(api.ChangeNoLeader)-len(kind))), text)
}

func changeText(c api.Change) string {
	leader, isLeader, term := c.Leader, c.IsLeader, c.Term
	suffix := ""
	if s := c.Snapshot; s != nil {
		leader, isLeader, term = s.Leader, s.IsLeader, s.Term
		if leader != nil && s.Authority != api.AuthorityView {
			suffix = ", lease " + lease(s.LeaseRemainingMS)
		}
		if leader == nil {
			suffix = ", " + printable(s.State)
		}
	}
	text := "nobody leads"
	if leader != nil {
		who := printable(leader.Name)
		if isLeader {
			who += " (this agent)"
		}
		text = who + " leads"
	} else if c.Type == api.ChangeRestarted {
		text = "no leader heard of yet"
	}
	text += fmt.Sprintf(", term %d", term) + suffix
	if leader != nil && leader.Meta != "" {
		text += ", meta " + printable(leader.Meta)
	}
	switch {
	case c.Type == api.ChangeCandidates && c.Snapshot != nil:
		text = printable(cmp.Or(strings.Join(c.Snapshot.Candidates, ", "), "nobody"))

	case unknownBefore(c):
		text += "; what changed before is not known"
	case c.Type == api.ChangeLagged:
		text = fmt.Sprintf("%d changes missed; %s", c.Missed, text)
	}
	return text
}

// unknownBefore reports whether it is not known what changed since the reader's last line. If Missed is at most
// 1, most likely the agent was restarted and no change was lost. A reader that is too slow misses many.
func unknownBefore(c api.Change) bool { return c.Type == api.ChangeLagged && c.Missed <= 1 }
