package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// maxKeyText bounds what is read of a file with a key to add, in bytes.
const maxKeyText = 4096

func keysCommand() command {
	return command{
		name: "keys", args: "list|rotate|add FILE|use FINGERPRINT|remove FINGERPRINT", min: 1, max: 1 + maxPlanned, words: []string{"list", "rotate", "add", "use", "remove"},
		usage: "change the cluster key with no restart, on all agents (rotate) or on this one",
		description: "list shows which agents have which key. rotate gives all agents a new key, then has all use it, then has\n" +
			"all drop the others; it is run on the host of a voter. Agents after --without get no key.\n\n" +
			"The others change only this agent and its key file. add FILE accepts the key in FILE, one line as\n" +
			"`doyen keygen` writes it; - is standard input. use encrypts with a key from now on, if all agents have it;\n" +
			"remove stops accepting one. A unique beginning of a FINGERPRINT is enough.\n" +
			"Exit codes: 0 done, 1 refused, 3 the agent can't be reached.",
		flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "without", Usage: "rotate: `NAME` of an agent that gets no key, repeatable"},
			&cli.BoolFlag{Name: "force", Usage: "use, rotate: go on even if agents lack the key or can't be reached: they are cut off", DisableDefaultText: true},
		},
		run: keys,
	}
}

func keys(i *invocation) error {
	verb, word := i.Args().Get(0), i.Args().Get(1)
	if verb != "rotate" && i.NArg() > 2 {
		return usage("write: doyen keys "+verb+" with one argument", "keys: too many arguments: %q", i.Args().Get(2))
	}
	if verb == "list" && word != "" {
		return usage("write: doyen keys list", "keys list takes no arguments, got %q", word)
	}
	if i.IsSet("without") && verb != "rotate" || i.Bool("force") && verb != "rotate" && verb != "use" {
		return usage("--without is for rotate, --force for rotate and use", "keys %s: a flag that is not for it", verb)
	}
	switch verb {
	case "list":
		return listKeys(i)
	case "rotate":
		return rotateKeys(i)
	}
	if word == "" {
		what := map[string]string{"add": "FILE", "use": "FINGERPRINT", "remove": "FINGERPRINT"}[verb]
		return usage("write: doyen keys "+verb+" "+what+"; `doyen keys list` shows the fingerprints", "keys %s: %s is missing", verb, what)
	}
	ctx, cancel := i.change()
	defer cancel()
	c := i.client()
	var request api.KeysRequest
	if verb == "add" {
		key, err := i.readKey(word)
		if err != nil {
			return err
		}
		request.Add = key
	}
	if verb != "add" {
		list, err := c.Keys(ctx)
		if err != nil {
			return fmt.Errorf("list the keys: %w", err)
		}
		whole, err := wholeFingerprint(list, word)
		if err != nil {
			return &failure{code: exitFailed, what: verb + " key " + word, err: err, hint: "`doyen keys list` shows the fingerprints"}
		}
		if verb == "use" {
			request.Use, request.Force = whole, i.Bool("force")
		} else {
			request.Remove = whole
		}
	}
	list, err := c.ChangeKeys(ctx, request)
	if refused, ok := errors.AsType[*client.APIError](err); ok && refused.Code == api.CodeUnavailable {
		return &failure{code: exitFailed, what: verb + " key", err: err,
			hint: "the agent must be able to write to the directory of its key file, and nobody may have changed that file since"}
	}
	if err != nil {
		return fmt.Errorf("%s key: %w", verb, err)
	}
	return i.answer(keysTable(list))
}

// listKeys lists the keys of all agents. JSON has the bodies of both calls, in one object.
func listKeys(i *invocation) error {
	ctx, cancel := i.question()
	defer cancel()
	c := i.client()
	list, err := c.Keys(ctx)
	if err != nil {
		return fmt.Errorf("list the keys: %w", err)
	}
	body := i.body
	all, err := c.Agents(ctx)
	if refused, ok := errors.AsType[*client.APIError](err); ok && refused.Code == api.CodeNotFound {
		i.body = body
		return i.answer(keysTable(list)) // an agent of an older version
	}
	if err != nil {
		return fmt.Errorf("list the keys of all agents: %w", err)
	}
	if i.body, err = unite(body, i.body); err != nil {
		return fmt.Errorf("put the keys together: %w", err)
	}
	return i.answer(keysOfAll(list, all))
}

func rotateKeys(i *invocation) error {
	request := api.KeysRequest{Rotate: true, Force: i.Bool("force")}
	if i.NArg() > 1 && !i.IsSet("without") {
		return usage("write: doyen keys rotate --without NAME", "keys rotate: %q is not a flag", i.Args().Get(1))
	}
	var err error
	if request.Without, err = i.names(append(i.StringSlice("without"), i.Args().Tail()...), "write --without a, --without a,b or --without a --without b"); err != nil {
		return err
	}
	ctx, cancel := i.change()
	defer cancel()
	rotated, err := i.client().RotateKeys(ctx, request)
	if refused, ok := errors.AsType[*client.APIError](err); ok && refused.Code == api.CodeNotConfirmed {
		return &failure{code: exitFailed, what: "rotate the keys", err: err, hint: seeKeys}
	}
	if err != nil {
		return fmt.Errorf("rotate the keys: %w", err)
	}
	text := keysTable(rotated.Keys)
	if rotated.Message != "" {
		text += printable(rotated.Message) + "\n"
	}
	return i.answer(text)
}

// readKey reads the text of a key from a file. The key is never an argument: everybody can
// read the arguments of a running process.
func (i *invocation) readKey(path string) (string, error) {
	in := i.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", &failure{code: exitFailed, what: "add key", err: err, hint: "name a file that `doyen keygen --out FILE` made, or - for standard input"}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxKeyText))
	if err != nil {
		return "", &failure{code: exitFailed, what: "add key", err: err}
	}
	lines := strings.Fields(string(text))
	if len(lines) != 1 {
		return "", &failure{code: exitFailed, what: "add key", err: fmt.Errorf("%s holds %d words, expected one line with one key", path, len(lines)),
			hint: "make one with `doyen keygen --out FILE`"}
	}
	return lines[0], nil
}

// wholeFingerprint returns the only fingerprint that starts with part.
func wholeFingerprint(list []api.Key, part string) (string, error) {
	found := ""
	for _, k := range list {
		if strings.HasPrefix(k.Fingerprint, strings.ToLower(part)) {
			if found != "" {
				return "", errors.New("more than one key starts with it")
			}
			found = k.Fingerprint
		}
	}
	if found == "" {
		return "", errors.New("no key of this agent starts with it")
	}
	return found, nil
}

// keysOfAll lists the keys of all agents, those of this one first.
func keysOfAll(own []api.Key, all []api.AgentReport) string {
	uses, has, unreached := map[string][]string{}, map[string][]string{}, []string{}
	var prints []string
	for _, k := range own {
		prints = append(prints, k.Fingerprint)
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
		rows := [][]string{{"FINGERPRINT", "USE", "USED BY", "ACCEPTED BY"}}
		for _, p := range prints {
			rows = append(rows, []string{p, useOf(own, p), strings.Join(uses[p], ","), strings.Join(has[p], ",")})
		}
		text = table(rows)
	}
	if len(unreached) > 0 {
		text += "not reached, so not shown: " + printable(strings.Join(unreached, ", ")) + "\n"
	}
	return text
}

// useOf is what this agent does with a key.
func useOf(own []api.Key, print string) string {
	for _, k := range own {
		switch {
		case k.Fingerprint == print && k.InUse:
			return "encrypts"
		case k.Fingerprint == print:
			return "accepted"
		}
	}
	return "refused"
}

const noKeys = "no keys: this agent runs without a cluster key\n"

func keysTable(list []api.Key) string {
	if len(list) == 0 {
		return noKeys
	}
	rows := [][]string{{"FINGERPRINT", "USE"}}
	for _, k := range list {
		rows = append(rows, []string{k.Fingerprint, useOf(list, k.Fingerprint)})
	}
	return table(rows)
}
