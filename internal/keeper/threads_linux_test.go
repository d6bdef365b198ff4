package keeper

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestThreadsAreReadAsTheKernelShowsThem(t *testing.T) {
	const state = "7 (a) R b) "
	for name, c := range map[string]struct {
		files map[string][2]string // schedstat and stat of each thread
		want  map[int]thread
	}{
		"one waits, one sleeps": {map[string][2]string{"7": {"1000 20 3\n", state + "R 1 1"}, "8": {"5 6 7\n", state + "S 1 1"}},
			map[int]thread{7: {1000, 20, true}, 8: {5, 6, false}}},
		"stopped, and in the kernel": {map[string][2]string{"7": {"1 2 3\n", state + "T 1"}, "8": {"5 6 7\n", state + "D 1"}},
			map[int]thread{7: {1, 2, false}, 8: {5, 6, false}}},
		"a kernel that counts nothing": {map[string][2]string{"7": {"0 0 0\n", state + "R 1 1"}}, nil},
		"a kernel without the file":    {map[string][2]string{"7": {"", state + "R 1 1"}}, nil},
		"no thread":                    {nil, nil},
	} {
		dir := t.TempDir()
		for id, texts := range c.files {
			for i, file := range []string{"schedstat", "stat"} {
				path := filepath.Join(dir, id, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(texts[i]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := threadsIn(dir); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if own := threadsOf(os.Getpid()); own != nil && own[os.Getpid()].ran == 0 { // nil: this kernel does not count
		t.Errorf("of this process: %v", own)
	}
}
