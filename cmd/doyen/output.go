package main

// The rules of the output.
//
//   - stdout holds the answer and nothing else; stderr holds errors, and for
//     `doyen agent` its log. A command that fails with an error message writes nothing to
//     stdout, except what `watch` and `drill` have written before.
//   - --output json writes the body of the agent's answer and a newline. Only escapes may differ.
//     `watch` writes one line for each change. `status` and `keys list` make two calls and write
//     the fields of both answers as one object. A command that asks no agent writes one object.
//   - Tables fit 80 columns where names are of ordinary length. They have a header in capitals,
//     two spaces between columns, no spaces at the end of a line, and "-" for an empty cell.
//     They are for people and may change; scripts use json.
//   - A duration is written as 3m12s, a short lease as 812ms.
//   - Colour never adds to what the text shows. It is used only if stdout is a terminal,
//     NO_COLOR is unset or empty, and TERM is not dumb.
//   - Text from other hosts is printed without its control characters; in JSON they are escaped.
//   - An error is "doyen: what failed: why", then "hint: what to do". A bad
//     configuration is one line.

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/internal/base/wrap"
	"golang.org/x/term"
)

// write writes the output to stdout in one piece. A failure is an error: a full disk must not look like an
// empty answer.
func (s *shell) write(output []byte) error {
	_, err := s.stdout.Write(output)
	return wrap.Error(err, "write the output")
}

// print writes lines for people.
func (s *shell) print(format string, args ...any) error {
	return s.write(fmt.Appendf(nil, format, args...))
}

// lineWidth is the greatest width of a table with names of ordinary length.
const lineWidth = 80

// widths returns the width of each column of a table.
func widths(rows [][]string) []int {
	all := make([]int, len(rows[0]))
	for _, row := range rows {
		for column, cell := range row {
			all[column] = max(all[column], utf8.RuneCountInString(orDash(printable(cell))))
		}
	}
	return all
}

// room returns how wide a table's last column may be so that no line exceeds lineWidth.
func room(rows [][]string) int {
	left := lineWidth
	for _, wide := range widths(rows)[:len(rows[0])-1] {
		left -= wide + 2
	}
	return left
}

// table writes rows in aligned columns. The first row is the header.
func table(rows [][]string) string {
	return painted(rows, func(_, _ int, cell string) string { return cell })
}

// listed returns a table with a header and one row for each element of a list.
func listed[T any](header []string, list []T, row func(T) []string) string {
	return table(append([][]string{header}, each.Of(list, row)...))
}

// painted writes a table, in which paint colours each cell by its row and column.
func painted(rows [][]string, paint func(row, column int, cell string) string) string {
	var text strings.Builder
	wide := widths(rows)
	for n, row := range rows {
		line := ""
		for column, cell := range row {
			cell = orDash(printable(cell))
			line += paint(n, column, cell) + strings.Repeat(" ", wide[column]-utf8.RuneCountInString(cell)+2)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}

func orDash(s string) string { return cmp.Or(s, "-") }

// printable replaces characters that could control a terminal. An agent checks only the names that it receives,
// not reasons, messages and versions.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// age writes how long ago something was: 812ms, 5s, 3m12s, 4h5m, 12d3h.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Hour:
		return d.Truncate(time.Second).String()
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func yesNo(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] }

func upDown(b bool) string { return map[bool]string{true: "up", false: "down"}[b] }

// palette colours text, if on is set.
type palette struct{ on bool }

func (s *shell) palette() palette {
	file, ok := s.stdout.(*os.File)
	return palette{ok && wantsColour(term.IsTerminal(int(file.Fd())), s.getenv)}
}

// wantsColour honours https://no-color.org.
func wantsColour(terminal bool, getenv func(string) string) bool {
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

func (p palette) paint(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) green(s string) string  { return p.paint("32", s) }
func (p palette) yellow(s string) string { return p.paint("33", s) }
func (p palette) red(s string) string    { return p.paint("31", s) }
func (p palette) faint(s string) string  { return p.paint("2", s) }
