package scenario

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/netns"
	"github.com/doyen-election/doyen/testbed/observe"
)

// sides are the two ends of links, and a direction between them.
type sides struct {
	a, b      []string
	direction hosts.Direction
}

// split reads "A…", "A… -> B…", "A… <- B…" and "A… | B…". A missing B means every host that is
// not in A.
func (w *world) split(words []string) (sides, error) {
	direction, at := hosts.BothWays, len(words)
	for i, word := range words {
		switch word {
		case "->":
			direction, at = hosts.Forth, i
		case "<-":
			direction, at = hosts.Back, i
		case "|":
			at = i
		}
	}
	a, err := w.names(words[:at])
	if err != nil {
		return sides{}, err
	}
	if at == len(words) {
		b := slices.DeleteFunc(slices.Clone(w.config.Names()), func(name string) bool { return slices.Contains(a, name) })
		return sides{a, b, direction}, nil
	}
	b, err := w.names(words[at+1:])
	if err != nil {
		return sides{}, err
	}
	if strings.Contains(strings.Join(words[at+1:], " "), "rest") {
		b = slices.DeleteFunc(b, func(name string) bool { return slices.Contains(a, name) })
	}
	if slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) }) {
		return sides{}, errors.New("a host is on both sides")
	}
	return sides{a, b, direction}, nil
}

func cutCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	s, where, err := w.splitHosts(args)
	if err != nil {
		return "", err
	}
	return "", w.begin(hosts.Cut(s.b, s.direction), where...)
}

// splitHosts is like split, and also returns the hosts of the first side.
func (w *world) splitHosts(words []string) (s sides, where []*hosts.Host, err error) {
	if s, err = w.split(words); err == nil {
		where, err = w.hostsOf(s.a)
	}
	return s, where, err
}

// healLinks: heal all, or heal HOST…. It ends cuts between these hosts and all others. Delays and
// losses stay.
func healLinks(w *world, where []*hosts.Host) error {
	return w.end(hosts.Cut(nil, hosts.BothWays), where...)
}

// linkCommand: link A… [B…] KEY=VALUE…, link A -> B KEY=VALUE…, link all KEY=VALUE…. Without a
// key, the links are perfect again.
func linkCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	args, pairs := options(args)
	link, err := linkOf(pairs)
	if err != nil {
		return "", err
	}
	s, err := w.linkSides(args)
	if err != nil {
		return "", err
	}
	where, err := w.hostsOf(s.a)
	if err != nil {
		return "", err
	}
	f := hosts.Degrade(s.b, s.direction, link, strings.Join(pairs, ", "))
	if len(pairs) == 0 {
		return "", w.end(f, where...)
	}
	return "", w.begin(f, where...)
}

func (w *world) linkSides(words []string) (sides, error) {
	if len(words) == 1 && words[0] == "all" {
		return sides{w.config.Names(), w.config.Names(), hosts.Forth}, nil
	}
	if len(words) == 2 {
		words = []string{words[0], "|", words[1]}
	}
	return w.split(words)
}

func linkOf(words []string) (netns.Link, error) {
	var l netns.Link
	keys := flag.NewFlagSet("link", flag.ContinueOnError)
	keys.DurationVar(&l.Delay, "delay", 0, "")
	keys.DurationVar(&l.Jitter, "jitter", 0, "")
	keys.Int64Var(&l.Rate, "rate", 0, "")
	keys.Func("port", "", func(value string) error {
		port, err := strconv.ParseUint(value, 10, 16)
		l.Port = uint16(port)
		return err
	})
	for key, to := range map[string]*float64{"loss": &l.Loss, "duplicate": &l.Duplicate, "reorder": &l.Reorder} {
		keys.Func(key, "", func(value string) (err error) { *to, err = share(value); return err })
	}
	for _, word := range words {
		key, value, err := pair(word)
		if err == nil {
			err = keys.Set(key, value)
		}
		if err != nil {
			return l, fmt.Errorf("%s: %w; the keys are delay, jitter, loss, duplicate, reorder, rate and port", word, err)
		}
	}
	return l, l.Validate()
}

// flapCommand cuts and heals links at intervals: flap HOST every TIME for TIME.
func flapCommand(w *world, _ *testscript.TestScript, args []string) (string, error) {
	every, args, err := duration(args, "every", 100*time.Millisecond)
	if err != nil {
		return "", err
	}
	long, args, err := duration(args, "for", 2*time.Second)
	if err != nil {
		return "", err
	}
	s, where, err := w.splitHosts(args)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(w.ctx, long)
	defer cancel()
	for cut := true; ctx.Err() == nil && err == nil; cut = !cut {
		if cut {
			err = w.begin(hosts.Cut(s.b, s.direction), where...)
		} else {
			err = healLinks(w, where)
		}
		_ = observe.Sleep(ctx, every)
	}
	if err == nil && w.ctx.Err() == nil {
		err = healLinks(w, where)
	}
	return "", cmp.Or(err, w.ctx.Err())
}
