// Command doyen runs the agent and talks to it.
//
// `doyen agent` runs the agent; nearly every other command asks the agent of this host over
// its Unix socket. This package has only flags, signals, exit codes and rendering. Package
// agent is what the agent does, and package client asks it.
//
// Scripts rely on the exit codes (errors.go) and on the output (output.go).
package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/keeper"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == guard.Word { // doyen itself has started this program, as a helper
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

// catchEndings has the first signal that asks for an end ask for a clean one; the second one
// is not caught. Where there is a keeper, it counts them: a signal to all processes of a group
// reaches this one twice.
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

// hangup is SIGHUP, from a terminal that closes, for the commands that it ends: not for the agent,
// and for none under nohup.
func hangup() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return nil
	}
	return []os.Signal{syscall.SIGHUP}
}
