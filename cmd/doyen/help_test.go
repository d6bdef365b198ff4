package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestEachCommandHasATextAndEachTextACommand(t *testing.T) {
	found, err := os.ReadDir("help")
	if err != nil || len(found) == 0 {
		t.Fatal(len(found), err)
	}
	all := append(commands(), helpCommand())
	for _, f := range found {
		if !slices.ContainsFunc(all, func(c command) bool { return c.name+".txt" == f.Name() }) {
			t.Errorf("help/%s: no command shows it", f.Name())
		}
	}
	for _, c := range all {
		if _, description, more := strings.Cut(c.text(), "\n"); c.usage() == "" || more && description != "" && !strings.Contains(c.help(), "DESCRIPTION:\n") {
			t.Errorf("help/%s.txt is not a line, or a line, an empty one and a description: %q", c.name, c.text())
		}
	}
}

func TestTextsNameWhatTheProgramDoes(t *testing.T) {
	for command, word := range map[string]string{"doctor": packaged, "restart": nextLimit.String(), "watch": awayLimit.String()} {
		if c, err := named(command); err != nil || !strings.Contains(c.help(), " "+word) {
			t.Errorf("the help of %s does not have %s, %v", command, word, err)
		}
	}
}

// The race detector reports what two commands share.
func TestTwoCommandsOfAProcessShareNothing(t *testing.T) {
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if code := run(t.Context(), []string{"doyen", "version"}, io.MultiReader(), io.Discard, io.Discard); code != exitOK {
				t.Errorf("code %d", code)
			}
		})
	}
	both.Wait()
}
