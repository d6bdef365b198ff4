package logger

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// hostile has characters that control a terminal, a delete, and some that change the direction of text.
const hostile = "a\u009b31m\u007f\u202e\u2066\U000e0041é😀"

func TestWhatATerminalObeysIsEscapedInJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + hostile
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		shown := string(Showable(encoded))
		if i := strings.IndexFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q is not escaped", shown[i:])
		}
		var back string
		if err := json.Unmarshal([]byte(shown), &back); err != nil || back != text {
			t.Errorf("%q comes back as %q, %v", text, back, err)
		}
	})
	if got := Showable([]byte(`{"name":"é😀"}`)); string(got) != `{"name":"é😀"}` {
		t.Errorf("what can be read is now %s", got)
	}
}

func TestALogOrdersATerminalNothing(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		New(format, slog.LevelInfo, &out).Info("the hook wrote", "line", hostile)
		if strings.ContainsAny(out.String(), "\u009b\u007f\u202e\u2066") {
			t.Errorf("%s: %q", format, &out)
		}
	}
}
