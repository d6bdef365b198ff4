package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// threadsOf returns the threads of a process by number; nil: this kernel does not count how long
// they have waited for a processor.
func threadsOf(pid int) map[int]thread {
	return threadsIn(filepath.Join("/proc", strconv.Itoa(pid), "task"))
}

func threadsIn(dir string) map[int]thread {
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := map[int]thread{}
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		times, timesErr := os.ReadFile(filepath.Join(dir, task.Name(), "schedstat"))
		state, stateErr := os.ReadFile(filepath.Join(dir, task.Name(), "stat"))
		var t thread
		_, scanErr := fmt.Sscan(string(times), (*int64)(&t.ran), (*int64)(&t.waited))
		if errors.Join(err, timesErr, stateErr, scanErr) != nil || t == (thread{}) {
			continue // the thread has just ended or begun, or this kernel shows zeros because it does not count waits
		}
		name := bytes.LastIndexByte(state, ')') // the command's name, before the last bracket, may have any bytes
		t.wants = bytes.HasPrefix(state[name+1:], []byte(" R"))
		all[id] = t
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
