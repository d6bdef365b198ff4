package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/act/hook"
	"github.com/doyen-election/doyen/internal/doctor"
)

// examine prints one line for each check of the doctor.
func examine(i *invocation) error {
	all, _, err := findings(i)
	if err != nil {
		return err
	}
	for _, f := range all {
		if f.Result != doctor.OK {
			err = silentExit{exitFailed}
		}
	}
	return errors.Join(i.show(map[string][]doctor.Finding{"findings": all}, findingLines(all, i.palette())), err)
}

// findings examines this host and its agent. It returns no doctor if the configuration can't be read.
func findings(i *invocation) ([]doctor.Finding, *doctor.Doctor, error) {
	found, wrong := gatherHere(i)
	if !found.unread {
		wrong = append(wrong, doctor.Mistakes(i.Context.Context, found.config, found.from == packaged)...)
	}
	var known []doctor.Mistake
	for _, err := range wrong {
		if _, misused := errors.AsType[*failure](err); misused {
			return nil, nil, err
		}
		m := doctor.Mistake{Problem: err.Error()}
		if bad, ok := errors.AsType[*settings.Error](err); ok {
			m.Flag = bad.Flag
		}
		if owned, ok := errors.AsType[*hook.OwnedError](err); ok {
			m.Owner = owned.UID
		}
		if bad, ok := errors.AsType[*settings.Error](checkedAsRoot(found.blame(err))); ok {
			m.Problem, m.Hint = bad.Problem, bad.Hint
		}
		known = append(known, m)
	}
	if found.unread {
		return doctor.CheckConfig(known), nil, nil
	}
	d := doctor.New(found.config, known, found.from)
	return d.Examine(i.Context.Context), d, nil
}

// findingLines writes a line "result check what: why; do" for each finding.
func findingLines(all []doctor.Finding, p palette) string {
	paint := map[string]func(string) string{doctor.OK: p.green, doctor.Warning: p.yellow, doctor.Error: p.red}
	var text strings.Builder
	for _, f := range all {
		line := f.What
		if f.Why != "" {
			line += ": " + f.Why
		}
		if f.Do != "" {
			line += "; " + f.Do
		}
		fmt.Fprintf(&text, "%s%*s %-13s %s\n", paint[f.Result](f.Result), len("warning")-len(f.Result), "", f.Check, printable(line))
	}
	return text.String()
}

func debugBundle(i *invocation) error {
	path := i.String("out")
	if path == "" {
		if i.IsSet("out") {
			return usage("name a file, or omit --out", "debug: --out is empty")
		}
		path = "doyen-debug-" + time.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
	}
	found, d, err := findings(i)
	if err != nil {
		return err
	}
	b := doctor.Bundle{Version: versionText(), Profile: i.duration("cpu-profile"), Findings: found}
	var file bytes.Buffer // in memory: it has a few hundred KiB
	if err := b.Write(i.Context.Context, d, &file); err != nil {
		return fmt.Errorf("collect a bug report: %w", err)
	}
	if err := newFile(path, file.Bytes(), "write the bug report", "choose another name with --out", false); err != nil {
		return err
	}
	failed := error(nil)
	if b.Away != "" {
		failed = silentExit{exitFailed}
		fmt.Fprintf(i.stderr, "doyen: the agent does not answer, so only what this host has of it is there: %s\n", printable(b.Away))
	}
	for _, m := range b.Missing {
		if m.Needed && m.Why != b.Away {
			failed = silentExit{exitFailed}
			fmt.Fprintf(i.stderr, "doyen: %s is missing: %s\n", m.Part, printable(m.Why))
		}
	}
	made := map[string]any{"file": path, "agent": b.Agent, "parts": b.Parts, "missing": append([]doctor.Missing{}, b.Missing...)}
	return errors.Join(i.show(made, fmt.Sprintf("wrote %s: %s\n", path, strings.Join(b.Parts, " "))), failed)
}

func setLogLevel(i *invocation) error {
	return ask(i, readTimeout, "set the log level", func(c *client.Client, ctx context.Context) (api.LogLevel, error) {
		return c.SetLogLevel(ctx, i.Args().Get(0), i.duration("for"))
	}, func(set api.LogLevel) string {
		return fmt.Sprintf("the log level is %s until %s, then %s again; a restart ends it earlier\n",
			printable(set.Level), set.Until.Local().Format(time.DateTime), printable(set.Then))
	})
}
