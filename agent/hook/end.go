package hook

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/internal/logger"
)

// EndWord is the first argument of a process that is to call End. An agent's keeper starts it
// when the agent can't be started again.
const EndWord = "hook-end"

// What End reports of each election: a line of one of these words and the name.
const (
	WordEnded  = "ended"
	WordFailed = "failed"
)

// whyEnds is the reason of End's events.
const whyEnds = "its agent can't be started again"

// End runs hooks with `none`, in place of an agent that has ended. Its argument is the format
// and the level of its log. It reads elections, each as three texts that end with a zero byte:
// name, term and command. If this process is killed, the runs end too, as those of an agent
// (see Guard). The caller ends the process with the code returned.
func End(args []string, in io.Reader, out, log io.Writer) int {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE} {
		signal.Notify(make(chan os.Signal, 1), s) // caught, not ignored: the commands start with the default
	}
	format, level, _ := strings.Cut(strings.Join(args, ""), ",")
	commands, events := Commands{Of: map[election.Name]string{}, Limit: Limit, Guarded: true}, []Event(nil)
	var mu sync.Mutex
	texts := bufio.NewScanner(in)
	texts.Buffer(nil, maxWords)
	texts.Split(zeroEnded)
	var triple []string
	for texts.Scan() {
		if triple = append(triple, texts.Text()); len(triple) < 3 {
			continue
		}
		name := election.Name(triple[0])
		term, _ := strconv.ParseUint(triple[1], 10, 64) // the keeper writes numbers
		commands.Of[name] = triple[2]
		triple = nil
		events = append(events, Event{Election: name, Event: election.NoLeader, Term: election.Term(term),
			Change: api.Change{Time: time.Now().UTC(), Type: api.ChangeNoLeader, Election: string(name), Term: term,
				Reason: whyEnds, BoottimeNS: int64(boottime.Now())},
			Result: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(out, map[bool]string{true: WordEnded, false: WordFailed}[err == nil], name)
			}})
	}
	r := Start(commands, logger.New(format, logger.Level(level), log).With("part", "hook"))
	for _, e := range events {
		r.Enqueue(e)
	}
	r.Close(context.Background()) // each run has its limit
	return 0
}

func zeroEnded(data []byte, _ bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}
