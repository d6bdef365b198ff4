package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/agent/store"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/internal/base/leasepage"
	"github.com/doyen-election/doyen/internal/keeper"
)

// settingFlags are the flags of the settings. All but the boolean ones take text, which settings.Setting
// parses. So an error has the same text whether the value is from a flag, the environment or the file.
func settingFlags() (flags []cli.Flag) {
	defaults := settings.Default()
	for _, s := range settings.All() {
		switch v := s.Field(&defaults).(type) {
		case *bool:
			flags = append(flags, &cli.BoolFlag{Name: s.Name, Usage: s.Help, Value: *v})
		case *[]string:
			flags = append(flags, &cli.StringSliceFlag{Name: s.Name, Usage: s.Help})
		default:
			standard := strings.TrimPrefix(fmt.Sprint(s.JSON(&defaults)), "0s")
			flags = append(flags, &cli.StringFlag{Name: s.Name, Usage: s.Help, DefaultText: standard})
		}
	}
	return flags
}

func runAgent(i *invocation) error {
	if i.Bool("check-config") {
		return checkConfig(i)
	}
	hangups := make(chan os.Signal, 1)
	if i.process {
		keeper.Private()
		signal.Notify(hangups, syscall.SIGHUP) // before the configuration is read, so that no SIGHUP is missed
	}
	if found, err := gather(i); err == nil {
		found.config.Await(i.Context.Context, func(missing string) { fmt.Fprintf(i.stderr, "doyen: agent: %s\n", missing) })
	}
	judge := settings.Config.Judge
	if i.life != nil { // the keeper's start has checked the rest; a life that goes on leading must not end because a hook is now missing
		judge = settings.Config.Validate
	}
	found, config, err := configured(i, judge)
	if err != nil {
		return err
	}
	around := agent.Process{Life: i.life, Hangups: hangups, Reread: func() (settings.Config, error) {
		_, again, err := configured(i, settings.Config.Judge)
		return again, err
	}}
	if i.life != nil {
		around.Trial = i.life.Try
	}
	if i.process {
		if around.Program, err = keeper.Program(os.Args[0]); err != nil {
			return err
		}
		if config.Keeper && i.life == nil {
			signal.Ignore(syscall.SIGHUP) // like the keeper, until it can pass SIGHUP on to the agent
			err = keeper.Become(keeper.Given{
				LogFormat: config.LogFormat, LogLevel: config.LogLevel, Program: around.Program, Args: os.Args, Act: i.actFlags(),
				Record: record.Path(config.RecordDir, config.Socket, config.Name), Lock: store.LockOf(config.DataDir), Pages: leasepage.Dir(config.Socket),
			})
			signal.Notify(hangups, syscall.SIGHUP)
			fmt.Fprintf(i.stderr, "doyen: running without a keeper: %v\n", err)
		}
	}
	i.catch() // not earlier: a signal caught before this program became the keeper would be lost
	defer outliveReaders()()
	switch err := agent.Run(i.Context.Context, config, around, i.stderr); {
	case errors.Is(err, agent.ErrRestart):
		return i.restart(around.Program)
	case err != nil:
		return found.blame(err)
	}
	return nil
}

// restart ends the process so that the next life starts from the present program file. A keeper starts it;
// without one, this process becomes the next life.
func (s *shell) restart(program string) error {
	if s.life != nil {
		s.life.Restarts()
		return nil
	}
	signal.Ignore(syscall.SIGHUP) // until the next process can reload
	return fmt.Errorf("start %s again: %w", program, syscall.Exec(program, os.Args, os.Environ()))
}

// configured returns the configuration if the part that the command uses is valid.
func configured(i *invocation, validate func(settings.Config) error) (found gathered, config settings.Config, err error) {
	if found, err = gather(i); err != nil {
		return found, config, err
	}
	config, err = found.config.Resolve()
	if err == nil {
		err = validate(config)
	}
	return found, config, found.blame(err)
}

// checkConfig prints the configuration, or all mistakes in it if there are any.
func checkConfig(i *invocation) error {
	found, wrong := gatherAll(i)
	if !found.unread {
		wrong = append(wrong, found.config.Mistakes()...)
	}
	code := exitOK // the code of the first mistake
	for _, err := range wrong {
		code = cmp.Or(code, report(i.stderr, checkedAsRoot(found.blame(err))))
	}
	if code != exitOK {
		return silentExit{code}
	}
	config, err := found.config.Resolve()
	if err != nil {
		return found.blame(err)
	}
	config.CheckHere(i.stderr)
	given := &found.config
	if i.Bool("all") || i.json {
		given = nil
	}
	return printConfig(i, config, given)
}

// checkedAsRoot replaces the error of --check-config if root runs the check and a file belongs to another user.
// That is usually the agent's user. If the operator gave the file to root, the agent could not start.
func checkedAsRoot(err error) error {
	bad, _ := errors.AsType[*settings.Error](err)
	owned, ok := errors.AsType[*hook.OwnedError](err)
	if !ok || bad == nil {
		return err
	}
	name, check := strconv.FormatUint(uint64(owned.UID), 10), ""
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
		check = fmt.Sprintf(": `runuser -u %s -- doyen agent --check-config …`", name)
	}
	return &settings.Error{Flag: bad.Flag,
		Problem: strings.TrimSuffix(bad.Problem, ": chown root "+owned.Path),
		Hint: fmt.Sprintf("this was checked as root; if the agent runs as user %s, check as that user%s; if it runs as root, chown root %s",
			name, check, owned.Path)}
}

// outliveReaders keeps the process alive when nobody reads its log any more: that must not cost a leadership.
// It catches SIGPIPE instead of ignoring it, so that a hook's commands start with the default behaviour.
func outliveReaders() (undo func()) {
	pipes := make(chan os.Signal, 1) // never read: it is enough to catch the signal
	signal.Notify(pipes, syscall.SIGPIPE)
	return func() { signal.Stop(pipes) }
}

// printConfig prints the configuration as a YAML file, or the same content as JSON. If given is not nil, it
// omits each setting that has the default in given.
func printConfig(i *invocation, config settings.Config, given *settings.Config) error {
	var file bytes.Buffer
	if err := config.Fprint(&file, given); err != nil || !i.json {
		return errors.Join(err, i.write(file.Bytes()))
	}
	values := map[string]any{electionsKey: map[string]any{}}
	if err := yaml.Unmarshal(file.Bytes(), &values); err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	values[agent.RecordFormatKey] = record.Format
	return i.show(values, "")
}
