package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/base/logger"
	"github.com/doyen-election/doyen/internal/keeper"
)

const (
	// readTimeout bounds a call that only reads. The agent answers it from memory.
	readTimeout = 5 * time.Second
	// changeTimeout bounds a call that changes something: a hand-over may have to wait until a lease
	// expires.
	changeTimeout = 2 * time.Minute
)

// shell is a command's access to the outside world.
type shell struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string

	process bool         // the command has the process to itself, so it may replace it by another program
	life    *keeper.Life // the connection to the keeper; nil: there is no keeper
	// catch starts to catch SIGINT, SIGTERM and the given signals; a caught signal ends the context.
	catch func(also ...os.Signal)
}

// invocation is one run of a subcommand.
type invocation struct {
	*shell
	*cli.Context
	json bool   // the flag --output json
	body []byte // the body of the last answer, unchanged
}

// run does what the arguments ask for and returns the exit code.
func (s *shell) run(ctx context.Context, args []string) int {
	l, err := parse(args)
	if err == nil {
		err = s.do(ctx, l)
	}
	return report(s.stderr, err)
}

func (s *shell) do(ctx context.Context, l line) error {
	c, err := l.context(ctx)
	if err != nil {
		return err
	}
	format := c.String("output")
	if format != "table" && format != "json" {
		return usage("use table or json", "%s: unknown output format %q", l.command.name, format)
	}
	if l.command.name != "agent" {
		s.catch(hangup()...)
	}
	return l.command.run(&invocation{shell: s, Context: c, json: format == "json"})
}

func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "socket", Usage: "`PATH` of the agent's socket [$DOYEN_SOCKET]", DefaultText: client.DefaultSocket()},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the output: table or json", Value: "table"},
		&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help", DisableDefaultText: true}, // cli.HelpFlag is shared, and parsing writes to it
	}
}

func versionFlag() cli.Flag {
	return truthFlag("version", "print the version")
}

// allFlags are the command's own flags and those that every command has. In `doyen agent`, --socket is one of
// its settings.
func (c command) allFlags() []cli.Flag {
	flags := slices.Clone(c.flags)
	for _, f := range commonFlags() {
		if lookup(flags, f.Names()[0]) == nil {
			flags = append(flags, f)
		}
	}
	return flags
}

func helpCommand() command {
	return command{
		name: "help", args: "[COMMAND]", max: math.MaxInt,
		run: func(i *invocation) error {
			if i.NArg() == 0 {
				return i.print("%s", overview())
			}
			c, err := named(i.Args().First())
			if err != nil {
				return err
			}
			return i.print("%s", c.help())
		},
	}
}

func overview() string {
	list := each.Of(commands(), func(c command) string { return c.name + "\t" + c.usage() })
	flags := commonFlags()
	return "NAME:\n   doyen - elect a leader among hosts with no central store\n\n" +
		"USAGE:\n   doyen [global options] command [command options]\n\n" +
		"DESCRIPTION:\n   `doyen agent` runs the agent of this host. The commands that show or change something ask that\n" +
		"   agent over its Unix socket.\n\n" +
		"COMMANDS:\n" + indented(append(list, "help, h\t"+helpCommand().usage())) +
		"\nGLOBAL OPTIONS:\n" + options(slices.Insert(flags, len(flags)-1, versionFlag()))
}

// texts has one file for each command: a line about what the command does, and perhaps a description below.
//
//go:embed help
var texts embed.FS

func (c command) text() string {
	text, _ := texts.ReadFile("help/" + c.name + ".txt") // no error: a test reads the file of each command
	return string(text)
}

// usage returns one line about what the command does.
func (c command) usage() string { return strings.SplitN(c.text(), "\n", 2)[0] }

func (c command) help() string {
	text := fmt.Sprintf("NAME:\n   doyen %s - %s\n\nUSAGE:\n   %s\n\n", c.name, c.usage(), strings.TrimSpace("doyen "+c.name+" [command options] "+c.args))
	if _, description, found := strings.Cut(strings.TrimSuffix(c.text(), "\n"), "\n\n"); found {
		text += "DESCRIPTION:\n" + indented(strings.Split(description, "\n")) + "\n"
	}
	return text + "OPTIONS:\n" + options(c.allFlags())
}

// options lists flags as the library's help does. The library's template for that would make the program
// larger: templates find methods by name, so the linker keeps all methods.
func options(flags []cli.Flag) string {
	return indented(each.Of(flags, cli.Flag.String))
}

// indented indents lines, and aligns their columns. Tabs separate the columns.
func indented(lines []string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(w, strings.TrimRight("   "+line, " "))
	}
	w.Flush()
	return text.String()
}

// client returns a client of the agent's socket: the one in --socket, else in DOYEN_SOCKET, else this user's
// default socket. The client stores the last answer's body for --output json.
func (i *invocation) client() *client.Client {
	c := client.New(cmp.Or(i.String("socket"), i.getenv("DOYEN_SOCKET"), client.DefaultSocket()))
	c.Raw = func(body []byte) { i.body = bytes.Clone(body) }
	return c
}

// answer writes the last answer: with --output json its body, else the text for people.
func (i *invocation) answer(text string) error {
	if !i.json {
		return i.write([]byte(text))
	}
	return i.write(append(logger.Showable(bytes.TrimRight(i.body, "\n")), '\n'))
}

// show writes the text for people, or `found` as JSON. It is for results that are not one answer of the agent.
func (i *invocation) show(found any, text string) error {
	if !i.json {
		return i.write([]byte(text))
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(found); err != nil {
		return fmt.Errorf("encode the outcome: %w", err)
	}
	return i.write(logger.Showable(body.Bytes()))
}

// ask asks the agent, waits up to limit, and writes the answer.
func ask[T any](i *invocation, limit time.Duration, what string, call func(*client.Client, context.Context) (T, error), text func(T) string) error {
	found, err := call(i.client(), i.upTo(limit))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return i.answer(text(found))
}

// askBoth asks the agent two questions. As JSON, it writes the fields of both answers as one object.
func askBoth[A, B any](i *invocation, what string, first func(*client.Client, context.Context) (A, error), second func(*client.Client, context.Context) (B, error), text func(A, B) string) error {
	ctx := i.question()
	c := i.client()
	a, err := first(c, ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	bodies := [][]byte{i.body}
	b, err := second(c, ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fields := map[string]json.RawMessage{}
	for _, body := range append(bodies, i.body) {
		if err := json.Unmarshal(body, &fields); err != nil {
			return fmt.Errorf("put the answers together: %w", err)
		}
	}
	return i.show(fields, text(a, b))
}

// until calls the function at once and then once per `every`, until it returns true or the context ends.
func until(ctx context.Context, every time.Duration, known func() bool) {
	again := time.NewTicker(every)
	defer again.Stop()
	for !known() {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// question is the context of calls that only read.
func (i *invocation) question() context.Context { return i.upTo(readTimeout) }

// upTo returns a context that ends when the limit has passed, or with the command.
func (i *invocation) upTo(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(i.Context.Context, limit)
	context.AfterFunc(ctx, cancel) // frees the timer as soon as ctx ends, also if the command ends first
	return ctx
}
