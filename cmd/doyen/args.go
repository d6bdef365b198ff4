package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xrash/smetrics"

	"github.com/doyen-election/doyen/election"
)

// nameRule is the rule for the name of an agent or an election.
const nameRule = "a name has 1 to 63 characters from a-z, 0-9, dot, dash and underscore, and starts with a letter or digit"

// flag is one that a command takes. The help calls its value by the word that its usage has in
// back quotes.
type flag struct {
	name, usage string
	standard    string // what the help shows as its default
	short       string // the one letter of its other name
	truth       bool   // true or false, and true without a value
	list        bool   // repeatable, each time with one value or several, with commas
}

func truth(name, usage string) flag { return flag{name: name, usage: usage, truth: true} }

func (f flag) is(name string) bool { return name != "" && (f.name == name || f.short == name) }

func find(flags []flag, name string) int {
	return slices.IndexFunc(flags, func(f flag) bool { return f.is(name) })
}

// line is a command line as it was understood. Flags may be anywhere; those that all commands have
// may also come before the command's name.
type line struct {
	command command
	args    []string            // without the flags
	given   map[string][]string // by the flag's name
}

func parse(argv []string) (line, error) {
	l := line{given: map[string][]string{}}
	rest, err := l.take(append(commonFlags(), versionFlag()), argv[min(1, len(argv)):])
	switch {
	case err != nil:
		return l, err
	case l.isSet("help"):
		l.command = helpCommand()
		return l, nil
	case l.isSet("version"):
		l.command = versionCommand()
		return l, nil
	case len(rest) == 0:
		return l, usage("`doyen help` lists the commands", "no command given")
	}
	if l.command, err = named(rest[0]); err != nil {
		return l, err
	}
	rest, tail := commandOf(l.command.name, rest[1:])
	if l.args, err = l.take(l.command.allFlags(), rest); err != nil {
		return l, err
	}
	if len(l.args) == 0 && len(tail) > 0 { // the election follows
		tail = tail[1:]
	}
	l.args = append(l.args, tail...)
	if l.isSet("help") {
		l.args, l.command = []string{l.command.name}, helpCommand()
	}
	return l, l.command.checkArgs(l.args)
}

// named returns the command of that name.
func named(name string) (command, error) {
	all := append(commands(), helpCommand())
	var names []string
	for _, c := range all {
		if c.name == name || c.name == "help" && name == "h" {
			return c, nil
		}
		names = append(names, c.name)
	}
	hint := "`doyen help` lists the commands"
	if near := nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return command{}, usage(hint, "unknown command %q", name)
}

// commandOf splits the arguments of `doyen run` at the "--" before the command that it is
// to run. All that follows belongs to that command.
func commandOf(name string, args []string) (own, command []string) {
	if i := slices.Index(args, "--"); name == "run" && i >= 0 {
		return args[:i], args[i:]
	}
	return args, nil
}

// take takes the flags from the arguments, and returns the others: before the command is known, all
// from the first one on. After "--" no flag follows.
func (l *line) take(known []flag, args []string) (others []string, err error) {
	for len(args) > 0 {
		switch first := args[0]; {
		case first == "--":
			return append(others, args[1:]...), nil
		case len(first) > 1 && first[0] == '-':
			n, err := l.takeFlag(known, args)
			if err != nil {
				return nil, err
			}
			args = args[n:]
		case l.command.name == "":
			return args, nil
		default:
			others, args = append(others, first), args[1:]
		}
	}
	return others, nil
}

// takeFlag takes the flag at the start of the arguments, and returns how many of them it has.
func (l *line) takeFlag(known []flag, args []string) (int, error) {
	written, value, inline := strings.Cut(args[0], "=")
	name := strings.TrimPrefix(strings.TrimPrefix(written, "-"), "-")
	at, length := find(known, name), 1
	if at < 0 {
		return 0, l.unknownFlag(known, written, name)
	}
	switch f := known[at]; {
	case f.truth:
		yes, err := strconv.ParseBool(value)
		if inline && err != nil {
			return 0, usage("write "+written+"=true or "+written+"=false", "%s: %q is neither true nor false", written, value)
		}
		value = strconv.FormatBool(yes || !inline)
	case !inline && len(args) < 2:
		return 0, usage("write "+written+" VALUE", "%s needs a value", written)
	case !inline:
		value, length = args[1], 2
	}
	if name = known[at].name; value == "" && name == "socket" {
		return 0, usage("omit it for the default", "%s is empty", written)
	}
	l.given[name] = append(l.given[name], value)
	return length, nil
}

func (l *line) unknownFlag(known []flag, written, name string) error {
	var names []string
	for _, f := range known {
		names = append(names, f.name)
	}
	where, hint := "", "only --socket and --output may come before the command; `doyen --help` lists the flags"
	if l.command.name != "" {
		where, hint = l.command.name+": ", "`doyen "+l.command.name+" --help` lists the flags"
	}
	if near := nearest(name, names); near != "" {
		hint = "did you mean --" + near + "? " + hint
	} else if name == "json" {
		hint = "write --output json"
	}
	return usage(hint, "%sunknown flag %s", where, written)
}

// nearest returns the word that was most probably meant by the given one, or "".
func nearest(word string, words []string) string {
	const likely = 0.84 // Jaro-Winkler similarity; below it, suggestions are noise
	best, near := likely, ""
	for _, w := range words {
		if s := smetrics.JaroWinkler(word, w, 0.7, 4); s >= best {
			best, near = s, w
		}
	}
	return near
}

// checkArgs refuses a wrong number of arguments, and the wrong words.
func (c command) checkArgs(args []string) error {
	hint := "write: doyen " + c.name
	if c.args != "" {
		hint += " " + c.args
	}
	switch {
	case len(args) < c.min:
		return usage(hint, "%s: %s is missing", c.name, c.args)
	case len(args) > c.max && c.max == 0:
		if args[0] == "true" || args[0] == "false" { // the commonest mistake
			hint += "; give a true/false flag its value after =, as in --quorum=false"
		}
		return usage(hint, "%s takes no arguments, got %q", c.name, args[0])
	case len(args) > c.max:
		return usage(hint, "%s: too many arguments: %q", c.name, args[c.max])
	case len(c.words) > 0 && len(args) > 0 && !slices.Contains(c.words, args[0]):
		return usage(hint, "%s: unknown argument %q", c.name, args[0])
	}
	return nil
}

// arg returns the argument with that number, from 0 on, or "".
func (l *line) arg(n int) string {
	if n >= len(l.args) {
		return ""
	}
	return l.args[n]
}

func (l *line) isSet(flag string) bool { return len(l.given[flag]) > 0 }

// String returns what the flag was given last, or "".
func (l *line) value(flag string) string {
	if all := l.given[flag]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

func (l *line) isTrue(flag string) bool { return l.value(flag) == "true" }

// List returns all that a repeatable flag was given.
func (l *line) values(flag string) (all []string) {
	for _, value := range l.given[flag] {
		for one := range strings.SplitSeq(value, ",") {
			all = append(all, strings.TrimSpace(one))
		}
	}
	return all
}

// duration returns a flag's, or the standard one.
func (l *line) duration(flag string, standard, least, most time.Duration) (time.Duration, error) {
	text := l.value(flag)
	if text == "" {
		return standard, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, usage(fmt.Sprintf("write it with its unit, from %s to %s", least, most), "%s: --%s: %q is not a duration from %s to %s", l.command.name, flag, text, least, most)
	}
	return d, nil
}

// integer returns a flag's, or the standard one.
func (l *line) integer(flag string, standard, least, most int) (int, error) {
	text := l.value(flag)
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, usage("write it in digits", "%s: --%s: %q is not an integer from %d to %d", l.command.name, flag, text, least, most)
	}
	return n, nil
}

// names splits texts at their commas into names of agents.
func (l *line) names(texts []string, hint string) (all []string, err error) {
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); !election.ValidName(name) {
				return nil, usage(hint, "%s: %q is not a valid agent name", l.command.name, name)
			}
			all = append(all, name)
		}
	}
	return all, nil
}

// election returns the ELECTION argument, by default "default".
func (l *line) election() (string, error) {
	if len(l.args) == 0 {
		return string(election.Default), nil
	}
	if name := l.args[0]; election.ValidName(name) {
		return name, nil
	}
	return "", usage(nameRule, "%s: %q is not a valid election name", l.command.name, l.args[0])
}
