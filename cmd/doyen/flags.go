package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
)

// bounded is the value of a flag, between least and most. A default outside of these means "not given".
type bounded[T int | time.Duration] struct {
	value, least, most T
	kind, hint         string
	parse              func(string) (T, error)
}

// truthFlag is a flag without a value.
func truthFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

func durationFlag(name, usage string, standard, least, most time.Duration) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &bounded[time.Duration]{standard, least, most, "a duration", "write it with its unit, such as 10s", time.ParseDuration}}
}

func integerFlag(name, usage string, standard, least, most int) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &bounded[int]{standard, least, most, "an integer", "write it in digits", strconv.Atoi}}
}

// Set keeps the default if the text is empty, as from an empty variable.
func (b *bounded[T]) Set(text string) error {
	if text == "" {
		return nil
	}
	value, err := b.parse(text)
	if err != nil || value < b.least || value > b.most {
		return usage(b.hint, "%q is not %s from %v to %v", text, b.kind, b.least, b.most)
	}
	b.value = value
	return nil
}

// String returns the default as the help shows it.
func (b *bounded[T]) String() string {
	if b.value < b.least {
		return ""
	}
	return fmt.Sprint(b.value)
}

func (i *invocation) duration(flag string) time.Duration {
	return i.Generic(flag).(*bounded[time.Duration]).value
}

func (i *invocation) integer(flag string) int { return i.Generic(flag).(*bounded[int]).value }
