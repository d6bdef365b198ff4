package main

import (
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/doyen-election/doyen/agent/settings"
)

// flagOf returns the flag of a setting. Except for truths and lists the flag takes text, which
// settings.Setting parses: so the errors are the same wherever a value comes from.
func flagOf(s settings.Setting) cli.Flag {
	defaults := settings.Default()
	switch v := s.Field(&defaults).(type) {
	case *bool:
		return &cli.BoolFlag{Name: s.Name, Usage: s.Help, Value: *v}
	case *[]string:
		return &cli.StringSliceFlag{Name: s.Name, Usage: s.Help}
	case *string:
		return &cli.StringFlag{Name: s.Name, Usage: s.Help, DefaultText: *v}
	case *time.Duration:
		return &cli.StringFlag{Name: s.Name, Usage: s.Help, DefaultText: nonZero(*v)}
	case *int:
		return &cli.StringFlag{Name: s.Name, Usage: s.Help, DefaultText: strconv.Itoa(*v)}
	}
	return nil
}

func nonZero(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
