package main

import (
	"errors"
	"fmt"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
)

func word(i *invocation) error {
	name := i.election()
	if !election.ValidName(name) {
		return usage(nameRule, "word: %q is not a valid election name", name)
	}
	ctx := i.question()
	e, err := i.client().Word(ctx, name)
	switch {
	case err != nil:
		return fmt.Errorf("read the word of %s: %w", name, err)
	case i.Bool("delete") && e.Word != nil:
		return deleteWord(i, name)
	case i.Bool("delete"):
		return i.show(api.Outcome{Done: true}, name+" has no word\n")
	case i.json:
		return i.answer("")
	case e.Word == nil || e.Word.Text == "":
		return &failure{code: exitNone, what: name + " has no word", hint: "a program that leads writes it; `doyen elections` lists the elections"}
	}
	return i.answer(printable(e.Word.Text) + "\n")
}

// deleteWord leads for a moment: only a leader can write a word.
func deleteWord(i *invocation, name string) error {
	ctx := i.question()
	c := i.client()
	c.Raw = nil
	what := "delete the word of " + name
	if e, err := c.Election(ctx, name, client.ElectionOptions{}); err == nil && e.Leader != nil {
		return &failure{code: exitFailed, what: what, err: fmt.Errorf("%s leads it", e.Leader.Name),
			hint: "end the program that is its candidate there, `doyen campaigns` lists it, and delete the word again"}
	}
	elected := i.upTo(changeTimeout)
	l, err := c.CampaignAs(elected, name, api.CampaignRequest{Meta: "doyen word --delete"})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = errors.Join(l.Write(elected, ""), l.Close())
	if refused, ok := errors.AsType[*client.APIError](err); ok {
		return &failure{code: exitFailed, what: what, err: errors.New(refused.Message), hint: "`doyen voters` shows the voters"}
	} else if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return i.show(api.Outcome{Done: true}, "the word of "+name+" is deleted\n")
}
