package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/keeper"
)

// tryLimit bounds a trial of the next life's program. If the program hangs, the keeper kills it before this limit.
const tryLimit = 10 * time.Second

// RecordFormatKey is the key under which `doyen agent --check-config -o json` prints the record
// format that the program uses.
const RecordFormatKey = "record-format"

// noRecordNow is one of the reasons why a restart hands over first.
const noRecordNow = "the record is missing"

// lasting are the settings that a holder can't change while it leads. After a change, the
// record would be another agent's, or the other agents would refuse this one.
var lasting = []string{"name", "cluster", "data-dir", "socket", "record-dir", "quorum", "algorithm", "lease"}

// Restart checks whether the next life can start from the program file and the configuration: if it
// could not, the restart would cost the leaderships. After success the caller calls Restarts. If the
// next life can't go on from the record, the agent has to hand over first, and handsOver is the reason.
func (c commands) Restart(ctx context.Context) (handsOver string, err error) {
	handsOver, err = c.agent.tryNext(ctx)
	if err != nil {
		c.agent.logger.Warn("a restart was refused, and this agent goes on as it is", "why", err)
	}
	return handsOver, err
}

// Lasts reports whether the next life would go on leading (record), and whether a service
// manager started this agent (service).
func (c commands) Lasts() (record, service bool) {
	return c.agent.record.Kept(), os.Getenv("NOTIFY_SOCKET") != ""
}

// Restarts ends the process, so that its next life starts.
func (c commands) Restarts(handsOver string) {
	c.agent.restart.Do(func() {
		c.agent.handFirst = handsOver
		close(c.agent.restarts)
	})
}

func (a *agent) tryNext(ctx context.Context) (handsOver string, err error) {
	select {
	case <-a.leaving:
		return "", errors.New("this agent is stopping; start it again once it has stopped")
	default:
	}
	if a.around.Program == "" {
		return "", errors.New("this agent is part of another program, which has to restart it")
	}
	next, format, err := a.nextConfig(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range settings.All() {
		now, then := fmt.Sprint(s.JSON(&a.cfg)), fmt.Sprint(s.JSON(&next))
		kept := s.Name == "keeper" && a.around.Life != nil // the keeper is not restarted, so its setting can't change
		switch {
		case !kept && !slices.Contains(lasting, s.Name) || now == then:
		case (s.Name == "lease" || s.Name == "algorithm") && a.roster.Load().Follows(): // the roster's values stay in force
		default:
			return "", fmt.Errorf("--%s has changed from %q to %q, and an agent that goes on leading can't change it; restore it, %s",
				s.Name, now, then, otherwise(s.Name))
		}
	}
	if err := a.tryPorts(next); err != nil {
		return "", fmt.Errorf("the next process could not start: %w", err)
	}
	switch {
	case handsOver != "":
		return handsOver, nil
	case !a.record.Kept():
		return noRecordNow, nil
	case format != record.Format:
		return a.around.Program + " has another format of the record", nil
	}
	return "", nil
}

// otherwise advises an operator who wants the new value.
func otherwise(setting string) string {
	switch setting {
	case "algorithm", "lease":
		return "and change it for all agents while they run: doyen settings set"
	case "cluster", "quorum":
		return "or, since it has to be the same on all agents, stop all, change it, start all"
	}
	return "or stop the agent, which hands over, and start it again"
}

// nextConfig makes the program file print the settings that it would run with, and the format of
// its record; 0: it has no record. Without a keeper, nothing can run that file, so this program
// reads the settings itself.
func (a *agent) nextConfig(ctx context.Context) (next settings.Config, format int, err error) {
	program := a.around.Program
	if a.around.Trial == nil {
		if next, err = a.around.Reread(); err != nil {
			err = fmt.Errorf("%s can't start with this configuration: %w", program, err)
		}
		return next, record.Format, err
	}
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	printed, err := a.around.Trial(ctx)
	first, _, _ := strings.Cut(strings.TrimPrefix(string(printed), "doyen: "), "\n")
	switch {
	case errors.Is(err, keeper.ErrOlder):
		return next, 0, err
	case err != nil && first != "":
		return next, 0, fmt.Errorf("%s can't start with this configuration (%w): %s", program, err, first)
	case err != nil:
		return next, 0, fmt.Errorf("%s can't be started (%w); put a working program file in place, and try again", program, err)
	}
	next = a.cfg
	values := map[string]json.RawMessage{}
	err = json.Unmarshal(printed[bytes.LastIndexByte(printed, '\n')+1:], &values) // the last line has them; warnings come before
	delete(values, "check")                                                       // the host's check is not a text, and is not compared
	for _, s := range settings.All() {
		if value, known := values[s.Name]; known && err == nil {
			err = s.SetJSON(&next, value)
		}
	}
	if value, known := values[RecordFormatKey]; known && err == nil {
		err = json.Unmarshal(value, &format)
	}
	if _, names := values["name"]; err != nil || !names {
		return next, 0, fmt.Errorf("%s is not Doyen, or does not answer --check-config as it should; put its program file in place, and try again", program)
	}
	return next, format, nil
}

// tryPorts reports whether the next life could listen where this life does not listen. The
// addresses where this life listens can't be tried.
func (a *agent) tryPorts(next settings.Config) error {
	own := []int{int(a.transport.Addr().Port()), int(a.membership.Addr().Port())}
	for _, p := range next.Ports() { // the next life's program has validated them
		same := p.Flag == "http" && p.Address == a.settings.Load().HTTP || p.Flag == "agent-check" && p.Address == a.cfg.AgentCheck
		if same { // this life listens there; for http, a reload may have changed the address
			continue
		}
		if err := p.Try(); err != nil && !(settings.InUse(err) && slices.Contains(own, p.Number)) {
			return err
		}
	}
	return a.tryReadSocket(next)
}
