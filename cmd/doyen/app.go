package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/keeper"
)

const (
	// readTimeout bounds a question, which the agent answers from memory.
	readTimeout = 5 * time.Second
	// changeTimeout bounds a change: a hand-over may have to wait for a lease to expire.
	changeTimeout = 2 * time.Minute
)

// shell is a command's access to the outside world.
type shell struct {
	stdout, stderr io.Writer
	getenv         func(string) string

	arranged []string // the command line, as the parser gets it

	process bool         // the process is this command's alone: it may become another program
	life    *keeper.Life // nil: it has no keeper
	// catch has the signals that ask for an end caught from then on, and these too; nil: nobody
	// sends this run any.
	catch func(also ...os.Signal)
}

func (s *shell) catches(also ...os.Signal) {
	if s.catch != nil {
		s.catch(also...)
	}
}

// command describes one subcommand. Every one takes --socket and --output.
type command struct {
	name, usage, description string
	args                     string // as the help shows them
	min, max                 int    // how many arguments
	words                    []string
	flags                    []cli.Flag
	run                      func(*invocation) error
}

// invocation is one run of a subcommand.
type invocation struct {
	*shell
	*cli.Context
	json bool   // --output json
	body []byte // of the last answer, as it came
}

func newApp(s *shell, stdin io.Reader) *cli.App {
	app := &cli.App{
		Name:     "doyen",
		HelpName: "doyen",
		Usage:    "elect a leader among hosts with no central store",
		Description: "`doyen agent` runs the agent of this host. The commands that show or change something ask that\n" +
			"agent over its Unix socket.",
		Flags:       append(commonFlags(), &cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}, cli.HelpFlag),
		Reader:      stdin,
		Writer:      s.stdout,
		ErrWriter:   s.stderr,
		HideVersion: true,
		// Only main may end the process, with the code that run returns.
		ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return printVersion(&invocation{shell: s, Context: c})
			}
			return usage("`doyen help` lists the commands", "no command given")
		},
	}
	for _, c := range commands() {
		app.Commands = append(app.Commands, c.build(s))
	}
	app.Commands = append(app.Commands, helpCommand())
	return app
}

// helpCommand replaces urfave/cli's own, which has other texts.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Aliases: []string{"h"}, ArgsUsage: "[COMMAND]", HideHelp: true,
		Usage: "list the commands, or explain one",
		Action: func(c *cli.Context) error {
			top := c.Lineage()[1]
			if c.Args().Present() {
				return cli.ShowCommandHelp(top, c.Args().First())
			}
			return cli.ShowAppHelp(top)
		},
	}
}

// commands lists every subcommand.
func commands() []command {
	return []command{
		agentCommand(), actCommand(),
		leaderCommand(), isLeaderCommand(),
		statusCommand(), membersCommand(), electionsCommand(), campaignsCommand(), watchCommand(), historyCommand(), planCommand(), drillCommand(), doctorCommand(), debugCommand(),
		runCommand(), resignCommand(), transferCommand(), drainCommand(), leaveCommand(), reloadCommand(), restartCommand(), votersCommand(), settingsCommand(), allowCommand(), logLevelCommand(),
		keygenCommand(), keysCommand(), versionCommand(), completionCommand(),
	}
}

func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "socket", Usage: "`PATH` of the agent's socket [$DOYEN_SOCKET]", DefaultText: client.DefaultSocket()},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the output: table or json", Value: "table"},
	}
}

// allFlags are the command's own flags and those that every command takes. `doyen agent` has
// its own --socket, a setting.
func (c command) allFlags() []cli.Flag {
	flags := c.flags
	for _, f := range commonFlags() {
		if !hasFlag(flags, f.Names()[0]) {
			flags = append(flags, f)
		}
	}
	return flags
}

func (c command) build(s *shell) *cli.Command {
	return &cli.Command{
		Name: c.name, Usage: c.usage, Description: c.description, ArgsUsage: c.args, Flags: c.allFlags(),
		// Without this, `doyen leader help` would print help and not the leader of the
		// election "help".
		HideHelpCommand: true,
		Action: func(ctx *cli.Context) error {
			if err := c.checkArgs(ctx.Args().Slice()); err != nil {
				return err
			}
			format := ctx.String("output")
			if format != "table" && format != "json" {
				return usage("use table or json", "%s: unknown output format %q", c.name, format)
			}
			if c.name != "agent" {
				s.catches(hangup()...)
			}
			return c.run(&invocation{shell: s, Context: ctx, json: format == "json"})
		},
	}
}

// client returns a client of the agent's socket: --socket, else DOYEN_SOCKET,
// else where an agent of this user listens by default. It keeps the last
// answer's body for --output json.
func (i *invocation) client() *client.Client {
	path := i.String("socket")
	if path == "" {
		path = i.getenv("DOYEN_SOCKET")
	}
	if path == "" {
		path = client.DefaultSocket()
	}
	c := client.New(path)
	c.Raw = func(body []byte) { i.body = bytes.Clone(body) }
	return c
}

// answer writes the last answer: its body as it came, or the text for people.
func (i *invocation) answer(text string) error {
	if i.json {
		return i.printRaw(i.body)
	}
	return i.write([]byte(text))
}

func (i *invocation) question() (context.Context, context.CancelFunc) {
	return context.WithTimeout(i.Context.Context, readTimeout)
}

func (i *invocation) change() (context.Context, context.CancelFunc) {
	return context.WithTimeout(i.Context.Context, changeTimeout)
}
