package main

import (
	"embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/runner"
)

// The scripts are static: completing asks no agent, and so never waits for one.
//
//go:embed completion/bash.tmpl completion/zsh.tmpl completion/fish.tmpl
var completionTemplates embed.FS

func completionCommand() command {
	return command{
		name: "completion", args: "bash|zsh|fish", min: 1, max: 1, words: []string{"bash", "zsh", "fish"},
		usage: "print a script that completes doyen's commands and flags",
		description: "bash: source <(doyen completion bash)\n" +
			"zsh:  source <(doyen completion zsh), after compinit\n" +
			"fish: doyen completion fish | source",
		run: completion,
	}
}

// completed is one command as the templates see it.
type completed struct {
	Name, Usage string
	Words       []string // its arguments, if they are fixed
	Flags       []completedFlag
}

type completedFlag struct {
	Name, Short, Usage string
	TakesValue         bool
	Values             []string // if they are fixed
	Path               bool     // the value is the path of a file or directory
}

func completion(i *invocation) error {
	shell := i.Args().First()
	functions := template.FuncMap{"join": strings.Join, "quote": quoteIn(shell)}
	t, err := template.New(shell+".tmpl").Funcs(functions).ParseFS(completionTemplates, "completion/"+shell+".tmpl")
	if err != nil {
		return fmt.Errorf("read the completion for %s: %w", shell, err)
	}
	var script strings.Builder
	if err := t.Execute(&script, completedCommands()); err != nil {
		return fmt.Errorf("write the completion for %s: %w", shell, err)
	}
	return i.write([]byte(script.String()))
}

func completedCommands() []completed {
	var list []completed
	for _, c := range commands() {
		one := completed{Name: c.name, Usage: c.usage, Words: c.words}
		for _, f := range c.allFlags() {
			one.Flags = append(one.Flags, completeFlag(f))
		}
		one.Flags = append(one.Flags, completedFlag{Name: "help", Short: "h", Usage: "show help"})
		list = append(list, one)
	}
	return list
}

func completeFlag(f cli.Flag) completedFlag {
	names := f.Names()
	done := completedFlag{Name: names[0]}
	if len(names) > 1 {
		done.Short = names[1]
	}
	if documented, ok := f.(cli.DocGenerationFlag); ok {
		done.TakesValue = documented.TakesValue()
		done.Usage = strings.ReplaceAll(documented.GetUsage(), "`", "")
	}
	for _, s := range settings.All() {
		if s.Name == done.Name {
			done.Values = s.Choices
		}
	}
	switch done.Name {
	case "output":
		done.Values = []string{"table", "json"}
	case "restart":
		done.Values = []string{runner.RestartAlways, runner.RestartOnFailure, runner.RestartNever}
	case "socket", "config", "key-file", "data-dir", "out", "on-change", "check":
		done.Path = true
	}
	return done
}

// quoteIn quotes text for the shell's single quotes. For zsh it also quotes characters that
// have a special meaning in a description.
func quoteIn(shell string) func(string) string {
	pairs := []string{`'`, `'\''`}
	switch shell {
	case "zsh":
		pairs = append(pairs, `[`, `\[`, `]`, `\]`, `:`, `\:`)
	case "fish":
		pairs = []string{`\`, `\\`, `'`, `\'`}
	}
	return strings.NewReplacer(pairs...).Replace
}
