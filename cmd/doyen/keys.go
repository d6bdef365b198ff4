package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
)

// maxKeyText bounds what is read of a file with a key to add, in bytes.
const maxKeyText = 4096

func keysCommand() command {
	return command{
		name: "keys", args: "list|add FILE|use FINGERPRINT|remove FINGERPRINT", min: 1, max: 2, words: []string{"list", "add", "use", "remove"},
		usage: "change the cluster key with no restart: add everywhere, use everywhere, remove everywhere",
		description: "add FILE accepts the key in FILE, one line as `doyen keygen` writes it; - is standard input.\n" +
			"use encrypts with a key from now on; remove stops accepting one. Each changes only this agent and its\n" +
			"key file: run it on every agent before the next step. A unique beginning of a FINGERPRINT is enough.\n" +
			"Exit codes: 0 done, 1 refused, 3 the agent can't be reached.",
		run: keys,
	}
}

func keys(i *invocation) error {
	verb, word := i.Args().Get(0), i.Args().Get(1)
	if verb == "list" && word != "" {
		return usage("write: doyen keys list", "keys list takes no arguments, got %q", word)
	}
	if verb != "list" && word == "" {
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
		if verb == "list" {
			return i.answer(keysTable(list))
		}
		whole, err := wholeFingerprint(list, word)
		if err != nil {
			return &failure{code: exitFailed, what: verb + " key " + word, err: err, hint: "`doyen keys list` shows the fingerprints"}
		}
		if verb == "use" {
			request.Use = whole
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

// readKey reads the text of a key from a file. The key is never an argument: everybody can
// read the arguments of a running process.
func (i *invocation) readKey(path string) (string, error) {
	in := i.App.Reader
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

func keysTable(list []api.Key) string {
	if len(list) == 0 {
		return "no keys: this agent runs without a cluster key\n"
	}
	rows := [][]string{{"FINGERPRINT", "USE"}}
	for _, k := range list {
		use := "accepted"
		if k.InUse {
			use = "encrypts"
		}
		rows = append(rows, []string{k.Fingerprint, use})
	}
	return table(rows)
}
