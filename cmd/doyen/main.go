// Command doyen runs the agent, or asks a running one.
//
// `doyen agent` runs the agent. Nearly every other command asks this host's agent over its Unix socket. This
// package has only flags, signals, exit codes and rendering. Package agent is the agent itself, and package
// client makes the calls.
//
// Scripts rely on the exit codes (errors.go) and on the output (output.go).
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/keeper"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == guard.Word { // this program was started as a guard, to run a command
		os.Exit(guard.Main())
	}
	life := keeper.Attach()
	ctx, cancel := context.WithCancel(context.Background())
	var once sync.Once
	s := &shell{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, life: life, process: true}
	s.catch = func(also ...os.Signal) { once.Do(func() { catchEndings(cancel, life == nil, also...) }) }
	if life != nil {
		s.catch()
		life.Begins(alarm.Now())
	}
	os.Exit(s.run(ctx, os.Args))
}

// catchEndings calls clean at the first signal that asks for an end. With once, a second signal is not caught,
// so it kills this process. Under a keeper once is false: a signal to the whole process group reaches this
// process twice, once through the keeper, which counts signals itself.
func catchEndings(clean func(), once bool, also ...os.Signal) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, append(also, os.Interrupt, syscall.SIGTERM)...)
	go func() {
		<-asked
		if once {
			signal.Stop(asked)
		}
		clean()
	}()
}

// hangup returns SIGHUP, which a closing terminal sends and which ends any command but the agent. Under nohup
// SIGHUP is ignored, so hangup returns nothing.
func hangup() []os.Signal {
	return slices.DeleteFunc([]os.Signal{syscall.SIGHUP}, signal.Ignored)
}
