package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/doyen-election/doyen/election"
)

// nameRule is the rule for the name of an agent or an election.
const nameRule = "a name has 1 to 63 characters from a-z, 0-9, dot, dash and underscore, and starts with a letter or digit"

// arrange puts the command line in the order that urfave/cli wants: the command, its flags,
// then its arguments. On the command line, flags that all commands have may also come before
// the command's name. arrange refuses unknown commands and flags, and flags without their
// value, so that the parser never has to.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return []string{app.Name}, nil
	}
	front, rest, err := leadingFlags(app, args[1:])
	if err != nil {
		return nil, err
	}
	if len(rest) == 0 || slices.ContainsFunc(front, ownOfApp) {
		return append([]string{app.Name}, front...), nil
	}
	name, rest := rest[0], rest[1:]
	if name == "help" || name == "h" {
		return arrangeHelp(app, rest)
	}
	c := app.Command(name)
	if c == nil {
		return nil, unknownCommand(app, name)
	}
	rest, tail := commandOf(name, rest)
	flags, positional, err := split(name, c.Flags, rest)
	if err != nil {
		return nil, err
	}
	if len(positional) == 0 && len(tail) > 0 { // the line is arranged already: the election follows
		tail = tail[1:]
	}
	positional = append(positional, tail...)
	if slices.ContainsFunc(flags, ownOfApp) {
		return []string{app.Name, "help", name}, nil
	}
	return slices.Concat([]string{app.Name, name}, front, flags, []string{"--"}, positional), nil
}

// commandOf splits the arguments of `doyen run` at the "--" before the command that it is
// to run. All that follows belongs to that command.
func commandOf(name string, args []string) (own, command []string) {
	if i := slices.Index(args, "--"); name == "run" && i >= 0 {
		return args[:i], args[i:]
	}
	return args, nil
}

// ownOfApp reports whether the argument is a flag that asks for help or the version: then the
// rest of the line does not matter.
func ownOfApp(arg string) bool {
	return slices.Contains([]string{"--help", "-help", "-h", "--h", "--version", "-version"}, arg)
}

// leadingFlags takes the flags before the command's name.
func leadingFlags(app *cli.App, args []string) (flags, rest []string, err error) {
	for len(args) > 0 && isFlag(args[0]) {
		n, err := flagLength("", app.Flags, args)
		if err != nil {
			return nil, nil, err
		}
		flags, args = append(flags, args[:n]...), args[n:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	return flags, args, nil
}

// split separates a command's flags, with their values, from its arguments. Everything
// after "--" is an argument.
func split(name string, known []cli.Flag, args []string) (flags, positional []string, err error) {
	for len(args) > 0 {
		switch {
		case args[0] == "--":
			return flags, append(positional, args[1:]...), nil
		case isFlag(args[0]):
			n, err := flagLength(name, known, args)
			if err != nil {
				return nil, nil, err
			}
			flags, args = append(flags, args[:n]...), args[n:]
		default:
			positional, args = append(positional, args[0]), args[1:]
		}
	}
	return flags, positional, nil
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' && arg != "--" }

// flagLength returns how many of the arguments the flag at their start takes: 1,
// or 2 with its value.
func flagLength(command string, known []cli.Flag, args []string) (int, error) {
	written, value, inline := strings.Cut(args[0], "=")
	name := strings.TrimPrefix(strings.TrimPrefix(written, "-"), "-")
	if name == "help" || name == "h" {
		return 1, nil
	}
	flag := lookup(known, name)
	if flag == nil {
		return 0, unknownFlag(command, known, written, name)
	}
	if _, boolean := flag.(*cli.BoolFlag); boolean {
		if _, err := strconv.ParseBool(value); inline && err != nil {
			return 0, usage("write "+written+"=true or "+written+"=false", "%s: %q is neither true nor false", written, value)
		}
		return 1, nil
	}
	length := 1
	if !inline {
		if length = 2; len(args) < 2 {
			return 0, usage("write "+written+" VALUE", "%s needs a value", written)
		}
		value = args[1]
	}
	if value == "" && name == "socket" {
		return 0, usage("omit it for the default", "%s is empty", written)
	}
	return length, nil
}

func lookup(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func hasFlag(flags []cli.Flag, name string) bool { return lookup(flags, name) != nil }

func unknownCommand(app *cli.App, name string) error {
	var names []string
	for _, c := range app.Commands {
		names = append(names, c.Name)
	}
	hint := "`doyen help` lists the commands"
	if near := nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return usage(hint, "unknown command %q", name)
}

func unknownFlag(command string, known []cli.Flag, written, name string) error {
	var names []string
	for _, f := range known {
		names = append(names, f.Names()[0])
	}
	where, hint := "", "`doyen --help` lists the flags"
	if command != "" {
		where, hint = command+": ", "`doyen "+command+" --help` lists the flags"
	} else {
		hint = "only --socket and --output may come before the command; " + hint
	}
	if near := nearest(name, names); near != "" {
		hint = "did you mean --" + near + "? " + hint
	} else if name == "json" {
		hint = "write --output json"
	}
	return usage(hint, "%sunknown flag %s", where, written)
}

// arrangeHelp accepts `doyen help` and `doyen help COMMAND`.
func arrangeHelp(app *cli.App, args []string) ([]string, error) {
	args = slices.DeleteFunc(slices.Clone(args), isFlag)
	if len(args) > 0 && app.Command(args[0]) == nil {
		return nil, unknownCommand(app, args[0])
	}
	return slices.Concat([]string{app.Name, "help"}, args), nil
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
		return usage(hint+slipOfBool(args[0]), "%s takes no arguments, got %q", c.name, args[0])
	case len(args) > c.max:
		return usage(hint, "%s: too many arguments: %q", c.name, args[c.max])
	case len(c.words) > 0 && len(args) > 0 && !slices.Contains(c.words, args[0]):
		return usage(hint, "%s: unknown argument %q", c.name, args[0])
	}
	return nil
}

// slipOfBool explains the commonest mistake: true or false follows its flag after a space.
func slipOfBool(arg string) string {
	if arg == "true" || arg == "false" {
		return "; give a true/false flag its value after =, as in --quorum=false"
	}
	return ""
}

// election returns the ELECTION argument, by default "default".
func (i *invocation) election() (string, error) {
	if i.NArg() == 0 {
		return string(election.Default), nil
	}
	name := i.Args().First()
	if !election.ValidName(name) {
		return "", usage(nameRule,
			"%s: %q is not a valid election name", i.Command.Name, name)
	}
	return name, nil
}
