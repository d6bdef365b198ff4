package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
)

// nameRule is the rule for the name of an agent or an election.
const nameRule = "a name has 1 to 63 characters from a-z, 0-9, dot, dash and underscore, and starts with a letter or digit"

// line is a parsed command line. Flags may be anywhere after the command's name. Flags that all commands have
// may also come before it.
type line struct {
	command command
	args    []string    // the arguments, without flags
	given   [][2]string // pairs of a flag and its value
}

// context makes the library's parser read the flags and arguments.
func (l *line) context(ctx context.Context) (*cli.Context, error) {
	set := flag.NewFlagSet(l.command.name, flag.ContinueOnError)
	for _, f := range l.command.allFlags() {
		if err := f.Apply(set); err != nil {
			return nil, fmt.Errorf("flag --%s: %w", f.Names()[0], err)
		}
	}
	for _, g := range l.given {
		if err := set.Set(g[0], g[1]); err != nil {
			return nil, fmt.Errorf("flag --%s: %w", g[0], err)
		}
	}
	c := cli.NewContext(nil, set, nil)
	c.Context, c.Command = ctx, &cli.Command{Name: l.command.name, Flags: l.command.flags}
	return c, set.Parse(append([]string{"--"}, l.args...))
}

func parse(argv []string) (line, error) {
	l := line{}
	rest, err := l.take(append(commonFlags(), versionFlag()), argv[min(1, len(argv)):])
	switch {
	case err != nil:
		return l, err
	case l.has("help"):
		l.command, l.given = helpCommand(), nil
		return l, nil
	case l.has("version"):
		l.given = slices.DeleteFunc(l.given, func(g [2]string) bool { return g[0] == "version" })
		l.command, err = named("version")
		return l, err
	case len(rest) == 0:
		return l, usage("`doyen help` lists the commands", "no command given")
	}
	if l.command, err = named(rest[0]); err != nil {
		return l, err
	}
	if l.args, err = l.take(l.command.allFlags(), rest[1:]); err != nil {
		return l, err
	}
	if l.has("help") {
		l.args, l.command, l.given = []string{l.command.name}, helpCommand(), nil
	}
	return l, l.command.checkArgs(l.args)
}

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

// take removes the known flags from the arguments, and returns the rest. Before the command is known, it stops
// at the first argument that is not a flag. After "--" no flags follow. For a command that starts another
// program, "--" stays in the result, before that program's name.
func (l *line) take(known []cli.Flag, args []string) (others []string, err error) {
	for len(args) > 0 {
		switch first := args[0]; {
		case first == "--" && l.command.starts() && len(others) > 0:
			return append(others, args...), nil
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

// takeFlag parses the flag at the start of the arguments, and returns how many arguments it used.
func (l *line) takeFlag(known []cli.Flag, args []string) (int, error) {
	written, value, inline := strings.Cut(args[0], "=")
	name := strings.TrimPrefix(strings.TrimPrefix(written, "-"), "-")
	f, length := lookup(known, name), 1
	if f == nil {
		return 0, l.unknownFlag(known, written, name)
	}
	_, truth := f.(*cli.BoolFlag)
	switch {
	case truth && !inline:
		value = "true"
	case truth:
		if _, err := strconv.ParseBool(value); err != nil {
			return 0, usage("write "+written+"=true or "+written+"=false", "%s: %q is neither true nor false", written, value)
		}
	case !inline && len(args) < 2:
		return 0, usage("write "+written+" VALUE", "%s needs a value", written)
	case !inline:
		value, length = args[1], 2
	}
	if typed, ok := f.(*cli.GenericFlag); ok {
		if err := typed.Value.Set(value); err != nil {
			return 0, fmt.Errorf("%s: --%s: %w", l.command.name, name, err)
		}
	}
	if name = f.Names()[0]; value == "" && name == "socket" {
		return 0, usage("omit it for the default", "%s is empty", written)
	}
	l.given = append(l.given, [2]string{name, value})
	return length, nil
}

func lookup(flags []cli.Flag, name string) cli.Flag {
	f, _ := each.First(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	return f
}

func (l *line) has(flag string) bool {
	return slices.ContainsFunc(l.given, func(g [2]string) bool { return g[0] == flag })
}

func (l *line) unknownFlag(known []cli.Flag, written, name string) error {
	where, hint := "", "only --socket and --output may come before the command; `doyen --help` lists the flags"
	if l.command.name != "" {
		where, hint = l.command.name+": ", "`doyen "+l.command.name+" --help` lists the flags"
	}
	names := each.Of(known, func(f cli.Flag) string { return f.Names()[0] })
	if near := nearest(name, names); near != "" {
		hint = "did you mean --" + near + "? " + hint
	} else if name == "json" {
		hint = "write --output json"
	}
	return usage(hint, "%sunknown flag %s", where, written)
}

// nearest returns the word that was most probably meant, or "" if none is likely.
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

// checkArgs refuses a wrong number of arguments, wrong words, and invalid names of elections.
func (c command) checkArgs(args []string) error {
	hint := "write: doyen " + c.name
	if c.args != "" {
		hint += " " + c.args
	}
	switch {
	case len(args) < c.min:
		return usage(hint, "%s: %s is missing", c.name, c.args)
	case len(args) > c.max && c.max == 0:
		if args[0] == "true" || args[0] == "false" { // a frequent mistake
			hint += "; give a true/false flag its value after =, as in --quorum=false"
		}
		return usage(hint, "%s takes no arguments, got %q", c.name, args[0])
	case len(args) > c.max:
		return usage(hint, "%s: too many arguments: %q", c.name, args[c.max])
	case len(c.words) > 0 && len(args) > 0 && !slices.Contains(c.words, args[0]):
		return usage(hint, "%s: unknown argument %q", c.name, args[0])
	case strings.HasPrefix(c.args, "[ELECTION]") && len(args) > 0 && !election.ValidName(args[0]):
		return usage(nameRule, "%s: %q is not a valid election name", c.name, args[0])
	}
	return nil
}

// names splits texts at commas into names or IDs of agents. Only IDs have capitals.
func (i *invocation) names(texts []string, hint string) (all []string, err error) {
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); !election.ValidName(strings.ToLower(name)) {
				return nil, usage(hint, "%s: %q is not a valid agent name", i.Command.Name, name)
			}
			all = append(all, name)
		}
	}
	return all, nil
}

// election returns the argument ELECTION, or "default" if it is absent.
func (i *invocation) election() string { return cmp.Or(i.Args().First(), string(election.Default)) }
