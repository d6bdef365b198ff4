package jobs

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTheLargestWordFits(t *testing.T) {
	key := strings.Repeat("é", MaxName/2)
	w := Word{Version: version, Kind: Series, Done: key, Unknown: key, Run: &Run{At: key, Term: math.MaxUint64, Try: 99999, Since: base},
		Last: &End{At: key, Try: 99999, Result: TimedOut, Code: 255, When: base}}
	if n := len(w.Text()); n > MaxText {
		t.Errorf("%d bytes", n)
	}
	w.Ends = []string{"old", "x"}
	w.Last, w.Unknown = nil, ""
	for len(w.Ends) < 100 {
		w.Ends = append(w.Ends, "20 bytes of a key...")
	}
	got, err := Parse(w.Text())
	if err != nil || len(w.Text()) > MaxText || len(got.Ends) < 10 || got.Ends[0] == "old" {
		t.Errorf("%v, %d bytes, %q", err, len(w.Text()), got.Ends)
	}
}

func TestAWordIsReadAsItWasWritten(t *testing.T) {
	w := Word{Version: version, Kind: Cron, Spec: "0 3 * * <&>", Zone: "Europe/Berlin", Done: stamp(base), Run: &Run{At: stamp(base), Term: 7, Try: 2, Since: base},
		Last: &End{At: stamp(base), Try: 1, Result: Failed, Code: 3, When: base}, Unknown: "u", Missed: &Span{2, "a", "b"}, Ends: []string{"1"}}
	got, err := Parse(w.Text())
	if err != nil || !reflect.DeepEqual(got, w) || strings.ContainsAny(w.Text(), "\n\\") {
		t.Errorf("%v\n%+v\n%+v", err, got, w)
	}
}

func TestTextsThatAreNotAJobs(t *testing.T) {
	for _, text := range []string{"hello", "{}", "[]", "7", `{"v":2,"kind":"cron"}`, `{"v":1,"kind":"lottery"}`, `{"v":1,"kind":"cron"}`,
		`{"v":1,"kind":"cron","done":"yesterday"}`, `{"v":1,"kind":"cron","done":"2026-11-23T03:00:00Z","run":{"at":"x"}}`, `{"v":1,"kind":"key"} x`} {
		if w, err := Parse(text); err == nil {
			t.Errorf("%s is read as %+v", text, w)
		}
	}
	if w, err := Parse(""); err != nil || w.Version != 0 {
		t.Errorf("the empty word: %+v, %v", w, err)
	}
}

func TestWhatAWordShows(t *testing.T) {
	w := Word{Version: version, Kind: Cron, Spec: "30 2 * * *", Zone: "America/New_York", Done: "2026-03-07T07:30:00Z"}
	next, ok := w.Next()
	if want := time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC); !ok || !next.Equal(want) {
		t.Errorf("next %v %v, want %v", next, ok, want)
	}
	if _, ok := (Word{Version: version, Kind: Key, Spec: "@daily"}).Next(); ok {
		t.Error("once has a next time")
	}
}

func TestResetDone(t *testing.T) {
	w := Word{Version: version, Kind: Cron, Spec: "@daily", Done: "2030-01-01T00:00:00Z", Run: &Run{At: "2030-01-02T00:00:00Z"}}
	text, err := ResetDone(w.Text(), base, 1)
	if got, _ := Parse(text); err != nil || got.Done != stamp(base) || got.Run != nil || got.Spec != w.Spec {
		t.Errorf("%s, %v", text, err)
	}
	for _, bad := range []string{"", "hello", Word{Version: version, Kind: Series, Done: "7"}.Text()} {
		if _, err := ResetDone(bad, base, 1); err == nil {
			t.Errorf("%q is reset", bad)
		}
	}
}

func TestKeysAreInOrder(t *testing.T) {
	for i, keys := 0, []string{"", "1", "2", "10", "10a", "2026-1-31", "2026-02-01", "v1.2.9", "v1.2.10", "v1.10", "v18446744073709551616", "é"}; i < len(keys); i++ {
		for j := range keys {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := Compare(keys[i], keys[j]); got != want {
				t.Errorf("%q and %q: %d, want %d", keys[i], keys[j], got, want)
			}
		}
	}
	if Compare("v01", "v1") != 0 {
		t.Error("leading zeros count")
	}
}

func TestCompareIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a0-2.-]{0,6}`)
		a, b, c := key.Draw(t, "a"), key.Draw(t, "b"), key.Draw(t, "c")
		if Compare(a, b) != -Compare(b, a) || Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Fatalf("%q %q %q", a, b, c)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(`{"v":1,"kind":"cron","done":"2026-11-23T03:00:00Z","run":{"at":"2026-11-23T03:00:00Z","term":1,"try":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err != nil || text == "" {
			return
		}
		for _, c := range []Config{cronConfig(nil), {Name: "s", Kind: Series, Key: "5"}} {
			j, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if w.Kind == Cron && moment(w.Done).Before(base.AddDate(-1, 0, 0)) {
				return // too many occurrences to pass over here
			}
			out := j.Step(base, Leads{Term: 2, Text: text})
			j.Step(base, Written{Text: out.Write})
		}
	})
}
