package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// maxKeyText bounds the text of a key to add, in bytes.
const maxKeyText = 4096

func keys(i *invocation) error {
	verb, word := i.Args().Get(0), i.Args().Get(1)
	argument := map[string]string{"add": "FILE", "use": "FINGERPRINT", "remove": "FINGERPRINT"}[verb]
	switch {
	case verb != "rotate" && i.NArg() > 2:
		return usage("write: doyen keys "+verb+" with one argument", "keys: too many arguments: %q", i.Args().Get(2))
	case verb == "list" && word != "":
		return usage("write: doyen keys list", "keys list takes no arguments, got %q", word)
	case (i.IsSet("with") || i.IsSet("without") || i.IsSet("only")) && verb != "rotate" || i.Bool("force") && verb != "rotate" && verb != "use":
		return usage("--with, --without and --only are for rotate, --force for rotate and use", "keys %s: a flag that is not for it", verb)
	case verb == "list":
		return askBoth(i, "list the keys of all agents", (*client.Client).Keys, (*client.Client).Agents, keysOfAll)
	case verb == "rotate":
		return rotateKeys(i)
	case word == "":
		return usage("write: doyen keys "+verb+" "+argument+"; `doyen keys list` shows the fingerprints", "keys %s: %s is missing", verb, argument)
	}
	return ask(i, changeTimeout, verb+" key", func(c *client.Client, ctx context.Context) ([]api.Key, error) {
		request, err := i.keyChange(ctx, c, verb, word)
		if err != nil {
			return nil, err
		}
		list, err := c.ChangeKeys(ctx, request)
		return list, hinted(err, api.CodeUnavailable, "the agent must be able to write to the directory of its key file, and nobody may have changed that file since")
	}, keysTable)
}

func (i *invocation) keyChange(ctx context.Context, c *client.Client, verb, word string) (r api.KeysRequest, err error) {
	if verb == "add" {
		r.Add, err = i.readKey(word)
		return r, err
	}
	list, err := c.Keys(ctx)
	if err != nil {
		return r, err
	}
	whole, err := wholeFingerprint(list, word)
	if verb == "remove" {
		return api.KeysRequest{Remove: whole}, err
	}
	return api.KeysRequest{Use: whole, Force: i.Bool("force")}, err
}

func rotateKeys(i *invocation) error {
	if i.NArg() > 1 && !i.IsSet("without") {
		return usage("write: doyen keys rotate --without NAME", "keys rotate: %q is not a flag", i.Args().Get(1))
	}
	const hint = "write --without a, --without a,b or --without a --without b"
	with, err := i.names(i.StringSlice("with"), hint)
	without, bad := i.names(append(i.StringSlice("without"), i.Args().Tail()...), hint)
	only, wrong := i.names(i.StringSlice("only"), hint)
	if err = cmp.Or(err, bad, wrong); err != nil {
		return err
	}
	request := api.KeysRequest{With: with, Without: without, Only: only, Force: i.Bool("force")}
	if len(request.Only) == 0 && !request.Force {
		named := slices.Concat(with, without)
		_, ids, err := i.meant("give them the new key too, which the voters get?", func(m api.Member) bool {
			return !m.Voter && !slices.Contains(named, m.Name) && !slices.Contains(named, m.ID)
		})
		if err != nil {
			return err
		}
		request.With = append(request.With, ids...)
	}
	return ask(i, changeTimeout, "rotate the keys", func(c *client.Client, ctx context.Context) (api.Keys, error) {
		rotated, err := c.RotateKeys(ctx, request)
		return rotated, hinted(err, api.CodeNotConfirmed, seeKeys)
	}, func(rotated api.Keys) string {
		text := keysTable(rotated.Keys)
		if rotated.Message != "" {
			text += printable(rotated.Message) + "\n"
		}
		return text
	})
}

// readKey reads the text of a key from a file. The key is never an argument: any user can read the arguments of
// a running process.
func (i *invocation) readKey(path string) (string, error) {
	in := i.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", &failure{code: exitFailed, what: err.Error(), hint: "name a file that `doyen keygen --out FILE` made, or - for standard input"}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxKeyText))
	if err != nil {
		return "", err
	}
	lines := strings.Fields(string(text))
	if len(lines) != 1 {
		return "", &failure{code: exitFailed, what: fmt.Sprintf("%s holds %d words, expected one line with one key", path, len(lines)), hint: "make one with `doyen keygen --out FILE`"}
	}
	return lines[0], nil
}

// wholeFingerprint returns the fingerprint that starts with part, if there is exactly one.
func wholeFingerprint(list []api.Key, part string) (string, error) {
	list = slices.DeleteFunc(list, func(k api.Key) bool { return !strings.HasPrefix(k.Fingerprint, strings.ToLower(part)) })
	why := "more than one key starts with " + part
	switch len(list) {
	case 1:
		return list[0].Fingerprint, nil
	case 0:
		why = "no key of this agent starts with " + part
	}
	return "", &failure{code: exitFailed, what: why, hint: "`doyen keys list` shows the fingerprints"}
}

// keysOfAll lists the keys of all agents, with this agent's keys first.
func keysOfAll(own []api.Key, all []api.AgentReport) string {
	uses, has, here, unreached := map[string][]string{}, map[string][]string{}, map[string]string{}, []string{}
	var prints []string
	for _, k := range own {
		prints = append(prints, k.Fingerprint)
		here[k.Fingerprint] = useOf(k)
	}
	for _, a := range all {
		if !a.Reached {
			unreached = append(unreached, a.Name)
		}
		for _, k := range a.Keys {
			if !slices.Contains(prints, k.Fingerprint) {
				prints = append(prints, k.Fingerprint)
			}
			if k.InUse {
				uses[k.Fingerprint] = append(uses[k.Fingerprint], a.Name)
			} else {
				has[k.Fingerprint] = append(has[k.Fingerprint], a.Name)
			}
		}
	}
	text := noKeys
	if len(prints) > 0 {
		text = listed([]string{"FINGERPRINT", "USE", "USED BY", "ACCEPTED BY"}, prints, func(p string) []string {
			return []string{p, cmp.Or(here[p], "refused"), strings.Join(uses[p], ","), strings.Join(has[p], ",")}
		})
	}
	if len(unreached) > 0 {
		text += "not reached, so not shown: " + printable(strings.Join(unreached, ", ")) + "\n"
	}
	return text
}

// useOf describes what this agent does with a key that it has.
func useOf(k api.Key) string {
	if k.InUse {
		return "encrypts"
	}
	return "accepted"
}

const noKeys = "no keys: this agent runs without a cluster key\n"

func keysTable(list []api.Key) string {
	if len(list) == 0 {
		return noKeys
	}
	return listed([]string{"FINGERPRINT", "USE"}, list, func(k api.Key) []string { return []string{k.Fingerprint, useOf(k)} })
}
