package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestEachDescriptionBelongsToACommandThatHasNoOther(t *testing.T) {
	found, err := os.ReadDir("help")
	if err != nil || len(found) == 0 {
		t.Fatal(len(found), err)
	}
	for _, f := range found {
		name := strings.TrimSuffix(f.Name(), ".txt")
		at := slices.IndexFunc(commands(), func(c command) bool { return c.name == name })
		if at < 0 || commands()[at].description != "" || !strings.Contains(commands()[at].help(), "DESCRIPTION:\n") {
			t.Errorf("help/%s: no command shows it", f.Name())
		}
	}
}

// The race detector sees what two commands share.
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
