package logger

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Showable escapes, as JSON does, all characters that control a terminal or change the direction of text. Such
// characters can only be inside strings, so the JSON keeps its meaning.
func Showable(encoded []byte) []byte {
	if !slices.ContainsFunc(encoded, func(b byte) bool { return b >= 0x7f }) {
		return encoded
	}
	var out strings.Builder
	for _, r := range string(encoded) {
		if r < 0x7f || unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return []byte(out.String())
}

// showing is the writer of a log in JSON. It escapes each line as Showable does.
type showing struct{ io.Writer }

func (s showing) Write(line []byte) (int, error) {
	_, err := s.Writer.Write(Showable(line))
	return len(line), err
}
