package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/act/runner"
)

// The scripts are static: a completion asks no agent, and so never waits for one.
//
//go:embed completion
var completions embed.FS

// completion writes the completion script of a shell. In the template, words in double braces stand for lines
// about each command and flag.
func completion(i *invocation) error {
	script, err := completions.ReadFile("completion/" + i.Args().First() + ".tmpl")
	if err != nil {
		return fmt.Errorf("read the completion: %w", err)
	}
	lines := map[string]func(command) (list, about string){"bash": bashLines, "zsh": zshLines, "fish": fishLines}[i.Args().First()]
	var names, list, about string
	for _, c := range commands() {
		l, a := lines(c)
		names, list, about = names+c.name+" ", list+l, about+a
	}
	return i.print("%s", strings.NewReplacer("{{names}}", names, "{{list}}\n", list, "{{about}}\n", about).Replace(string(script)))
}

// completed is a flag as the scripts see it.
type completed struct {
	name, short, usage string
	truth, path        bool   // truth: it has no value; path: its value is the path of a file
	values             string // the possible values, if they are fixed
}

func complete(c command) (flags []completed) {
	for _, f := range c.allFlags() {
		names := append(f.Names(), "")
		_, truth := f.(*cli.BoolFlag)
		one := completed{name: names[0], short: names[1], truth: truth}
		if documented, ok := f.(cli.DocGenerationFlag); ok {
			one.usage = strings.ReplaceAll(documented.GetUsage(), "`", "")
		}
		switch one.name {
		case "output":
			one.values = "table json"
		case "restart":
			one.values = strings.Join([]string{runner.RestartAlways, runner.RestartOnFailure, runner.RestartNever}, " ")
		case "socket", "config", "key-file", "data-dir", "out", "on-change", "check":
			one.path = true
		}
		for _, s := range settings.All() {
			if s.Name == one.name && len(s.Choices) > 0 {
				one.values = strings.Join(s.Choices, " ")
			}
		}
		flags = append(flags, one)
	}
	return flags
}

// pick returns what completes a flag's value: nothing, its fixed values, a file's name, or other.
func (f completed) pick(values, file, other string) string {
	switch {
	case f.truth:
		return ""
	case f.values != "":
		return fmt.Sprintf(values, f.values)
	case f.path:
		return file
	}
	return other
}

func bashLines(c command) (list, about string) {
	words := append([]string{}, c.words...)
	for _, f := range complete(c) {
		words = append(words, "--"+f.name)
		at := "    " + c.name + ":--" + f.name
		if f.short != "" {
			at += "|" + c.name + ":-" + f.short
		}
		const reply = `) COMPREPLY=($(compgen %s -- "$cur")); return ;;`
		list += f.pick(at+fmt.Sprintf(reply, "-W '%s'")+"\n", at+fmt.Sprintf(reply, "-f")+"\n", at+") return ;;\n")
	}
	return list, fmt.Sprintf("    %s) words='%s' ;;\n", c.name, strings.Join(words, " "))
}

func zshLines(c command) (list, about string) {
	quote := strings.NewReplacer(`'`, `'\''`, `[`, `\[`, `]`, `\]`, `:`, `\:`).Replace
	about = "    " + c.name + ")\n        _arguments \\\n"
	for _, f := range complete(c) {
		name, value := "'--"+f.name, f.pick(":value:(%s)", ":value:_files", ":value:")
		if f.short != "" {
			name = fmt.Sprintf("'(-%s --%s)'{-%s,--%s}'", f.short, f.name, f.short, f.name)
		} else if !f.truth {
			name += "="
		}
		about += fmt.Sprintf("            %s[%s]%s' \\\n", name, quote(f.usage), value)
	}
	words := "'*:argument:'"
	if len(c.words) > 0 {
		words = "'1:argument:(" + strings.Join(c.words, " ") + ")'"
	}
	if c.name == "keys" {
		words += " '2:file:_files'"
	}
	return fmt.Sprintf("        '%s:%s'\n", c.name, quote(c.usage())), about + "            " + words + "\n        ;;\n"
}

func fishLines(c command) (list, about string) {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace
	about = fmt.Sprintf("complete -c doyen -n __doyen_no_command -a %s -d '%s'\n", c.name, quote(c.usage()))
	here := fmt.Sprintf("complete -c doyen -n '__doyen_command_is %s'", c.name)
	if len(c.words) > 0 {
		about += here + " -a '" + strings.Join(c.words, " ") + "'\n"
	}
	for _, f := range complete(c) {
		about += here + " -l " + f.name
		if f.short != "" {
			about += " -s " + f.short
		}
		about += f.pick(" -x -a '%s'", " -r -F", " -x")
		about += " -d '" + quote(f.usage) + "'\n"
	}
	return "", about
}
