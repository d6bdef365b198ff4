package main

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/act"
	"github.com/doyen-election/doyen/internal/base/logger"
	"github.com/doyen-election/doyen/internal/base/wrap"
)

// actFlags returns the flags with which the keeper starts `doyen act` beside this agent.
func (i *invocation) actFlags() (args []string) {
	act, _ := named("act")
	for _, f := range act.allFlags() {
		name := f.Names()[0]
		switch values := i.StringSlice(name); {
		case !i.IsSet(name):
		case values != nil:
			args = append(args, "--"+name+"="+strings.Join(values, ","))
		default:
			args = append(args, "--"+name+"="+i.String(name))
		}
	}
	return args
}

func runAct(i *invocation) error {
	_, config, err := configured(i, settings.Config.ValidateActing)
	if err != nil {
		return err
	}
	read := func() (act.Work, error) {
		_, again, err := configured(i, settings.Config.ValidateActing)
		return work(again), err
	}
	if !work(config).Any() {
		return &settings.Error{Flag: "on-change", Problem: "nothing to run: the configuration names no hook and no check",
			Hint: "name one, by on-change, check or elections.NAME.on-change; then the agent's keeper starts doyen act by itself"}
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	i.catch()
	defer outliveReaders()()
	c := client.New(config.Socket)
	defer c.Close()
	err = act.Run(i.Context.Context, act.Config{Client: c, Work: work(config), Reread: read, Hangups: hangups,
		Logger: logger.New(config.LogFormat, logger.Level(config.LogLevel), i.stderr).With("part", "act")})
	if refused, ok := errors.AsType[*client.APIError](err); ok {
		hint := "run it as root, as the agent's user, or as that of act-user"
		if refused.Code == api.CodeInUse {
			hint = "the agent's keeper runs one: for a separate service set act: false in the agent's configuration, run systemctl restart doyen, then start the service again"
		}
		return &failure{code: exitConfig, what: "act", err: err, hint: hint}
	}
	return wrap.Error(err, "act")
}

// work returns what `doyen act` has to run by a configuration.
func work(c settings.Config) act.Work {
	return act.Work{Hooks: c.Hooks(), Checks: c.Checks(), Failures: c.HookFailures}
}
