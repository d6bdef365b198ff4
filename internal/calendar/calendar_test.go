package calendar

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const layout = "2006-01-02 15:04 -0700"

func at(t *testing.T, zone, text string) time.Time {
	t.Helper()
	if zone == "" {
		zone = "UTC"
	}
	l, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := time.Parse(layout, text); err == nil {
		return found.In(l)
	}
	found, err := time.ParseInLocation("2006-01-02 15:04", text, l)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTimesThatAreDue(t *testing.T) {
	for _, c := range []struct{ what, spec, zone, after, due string }{
		{"an hour that is skipped is due at its end", "30 2 * * *", "America/New_York", "2026-03-07 12:00", "2026-03-08 03:00 -0400, 2026-03-09 02:30 -0400"},
		{"and is one occurrence with what is due then", "0,30 2-3 * * *", "America/New_York", "2026-03-07 12:00", "2026-03-08 03:00 -0400, 2026-03-08 03:30 -0400, 2026-03-09 02:00 -0400"},
		{"an hour shown twice counts the first time", "30 1 * * *", "America/New_York", "2026-10-31 12:00", "2026-11-01 01:30 -0400, 2026-11-02 01:30 -0500"},
		{"in the second one nothing is due again", "*/15 1 * * *", "UTC", "2026-11-01 00:50", "2026-11-01 01:00 +0000, 2026-11-01 01:15 +0000"},
		{"asked in the second one", "0,45 1 * * *", "America/New_York", "2026-11-01 01:10 -0500", "2026-11-02 01:00 -0500"},
		{"every real hour", "0 * * * *", "America/New_York", "2026-11-01 00:30", "2026-11-01 01:00 -0400, 2026-11-01 01:00 -0500, 2026-11-01 02:00 -0500"},
		{"every real hour in spring", "0 * * * *", "America/New_York", "2026-03-08 00:30", "2026-03-08 01:00 -0500, 2026-03-08 03:00 -0400"},
		{"a step of minutes means instants", "*/30 1 * * *", "America/New_York", "2026-11-01 00:50", "2026-11-01 01:00 -0400, 2026-11-01 01:30 -0400, 2026-11-01 01:00 -0500, 2026-11-01 01:30 -0500, 2026-11-02 01:00 -0500"},
		{"instants of a skipped hour do not exist", "*/30 2 * * *", "America/New_York", "2026-03-07 12:00", "2026-03-09 02:00 -0400"},
		{"Berlin, spring", "15 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 03:00 +0200, 2026-03-30 02:15 +0200"},
		{"Berlin, autumn", "15 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 02:15 +0200, 2026-10-26 02:15 +0100"},
		{"Berlin, the end of the shown hour", "59 2,3 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 02:59 +0200, 2026-10-25 03:59 +0100"},
		{"Lord Howe skips 30 minutes", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-04 02:30 +1100, 2026-10-05 02:15 +1100"},
		{"Lord Howe shows 30 minutes twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00", "2026-04-05 01:45 +1100, 2026-04-06 01:45 +1030"},
		{"Lord Howe, instants", "45 * * * *", "Australia/Lord_Howe", "2026-04-05 01:00 +1100", "2026-04-05 01:45 +1100, 2026-04-05 01:45 +1030, 2026-04-05 02:45 +1030"},
		{"midnight that is skipped", "@daily", "America/Asuncion", "2023-09-30 12:00", "2023-10-01 01:00 -0300, 2023-10-02 00:00 -0300"},
		{"a day that is skipped", "0 12 * * *", "Pacific/Apia", "2011-12-28 13:00", "2011-12-29 12:00 -1000, 2011-12-31 00:00 +1400, 2011-12-31 12:00 +1400"},
		{"@hourly is every real hour", "@hourly", "Europe/Berlin", "2026-10-25 01:30 +0200", "2026-10-25 02:00 +0200, 2026-10-25 02:00 +0100"},
		{"ends of months", "0 0 31 * *", "", "2026-01-31 00:00", "2026-03-31 00:00 +0000, 2026-05-31 00:00 +0000"},
		{"the last day", "0 0 L * *", "", "2026-02-01 00:00", "2026-02-28 00:00 +0000, 2026-03-31 00:00 +0000"},
		{"the third Friday", "0 0 * * FRI#3", "", "2026-02-01 00:00", "2026-02-20 00:00 +0000"},
		{"leap days, over 2100", "0 0 29 2 *", "", "2092-03-01 00:00", "2096-02-29 00:00 +0000, 2104-02-29 00:00 +0000"},
		{"leap days, instants in a zone", "*/30 0 29 2 *", "Europe/Berlin", "2096-03-01 00:00", "2104-02-29 00:00 +0100, 2104-02-29 00:30 +0100"},
		{"one of two restricted days", "0 0 13 * 5", "", "2026-11-01 00:00", "2026-11-06 00:00 +0000, 2026-11-13 00:00 +0000, 2026-11-20 00:00 +0000"},
		{"a step over all days restricts too", "0 0 */2 * 1", "", "2026-11-01 00:00", "2026-11-09 00:00 +0000, 2026-11-23 00:00 +0000"},
		{"Sunday is 0 and 7", "0 0 * * 7", "", "2026-11-23 00:00", "2026-11-29 00:00 +0000"},
		{"the 30th of February is never", "0 0 30 2 *", "Europe/Berlin", "2026-01-01 00:00", "never"},
		{"and as instants", "* * 30 2 *", "Europe/Berlin", "2026-01-01 00:00", "never"},
	} {
		s, err := Parse(c.spec, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		var found []string
		now := at(t, c.zone, c.after)
		for range strings.Count(c.due, ",") + 1 {
			next, ok := s.Next(now)
			if !ok {
				found = append(found, "never")
				break
			}
			found = append(found, next.In(now.Location()).Format(layout))
			now = next.In(now.Location())
		}
		if got := strings.Join(found, ", "); got != c.due {
			t.Errorf("%s: %s in %s after %s is due at\n%s\nwant\n%s", c.what, c.spec, c.zone, c.after, got, c.due)
		}
	}
}

func TestSpecsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ spec, zone, why string }{
		{"", "", "empty"},
		{" \t", "", "empty"},
		{"* * * *", "", "5 fields"},
		{"0 0 1 1 * 2030", "", "5 fields"},
		{"60 * * * *", "", "above maximum"},
		{"@every 1h", "", "no fixed times"},
		{"@manual", "", "no fixed times"},
		{"@reboot", "", "unrecognized"},
		{"TZ=UTC 0 0 * * *", "", "--tz"},
		{" CRON_TZ=UTC 0 0 * * *", "", "--tz"},
		{"@daily", "Local", "not known"},
		{"@daily", "Mars/Olympus", "not known"},
		{"@daily", "../etc/passwd", "not known"},
	} {
		if _, err := Parse(c.spec, c.zone); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q in %q: %v, want %q", c.spec, c.zone, err, c.why)
		}
	}
	if _, ok := (Schedule{}).Next(time.Unix(0, 0)); ok {
		t.Error("a schedule that was not parsed is due")
	}
}

// field is a field of a spec, and the set of its matching values.
type field struct {
	text string
	set  uint64
	star bool
}

func fields(low, high int) *rapid.Generator[field] {
	return rapid.Custom(func(t *rapid.T) field {
		var f field
		for v := low; v <= high; v++ {
			f.set |= 1 << v
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			f.text, f.star = "*", true
		case 1:
			step := rapid.IntRange(2, max(2, (high-low)/2)).Draw(t, "step")
			f.text, f.star, f.set = fmt.Sprintf("*/%d", step), true, 0
			for v := low; v <= high; v += step {
				f.set |= 1 << v
			}
		case 2:
			from := rapid.IntRange(low, high).Draw(t, "from")
			to := rapid.IntRange(from, high).Draw(t, "to")
			f.text, f.set = fmt.Sprintf("%d-%d", from, to), 1<<(to+1)-1<<from
		default:
			var list []string
			f.set = 0
			for _, v := range rapid.SliceOfN(rapid.IntRange(low, high), 1, 3).Draw(t, "list") {
				list = append(list, fmt.Sprint(v))
				f.set |= 1 << v
			}
			f.text = strings.Join(list, ",")
		}
		return f
	})
}

// The oracle checks every minute of four years, except on days that do not match.
func TestNextIsWhatAnOracleFindsMinuteByMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minute, hour := fields(0, 59).Draw(t, "minute"), fields(0, 23).Draw(t, "hour")
		day, month, weekday := fields(1, 31).Draw(t, "day"), fields(1, 12).Draw(t, "month"), fields(0, 6).Draw(t, "weekday")
		spec := strings.Join([]string{minute.text, hour.text, day.text, month.text, weekday.text}, " ")
		has := func(f field, v int) bool { return f.set&(1<<v) != 0 }
		onDay := func(n time.Time) bool {
			d, w := has(day, n.Day()), has(weekday, int(n.Weekday()))
			if day.star || weekday.star {
				return d && w && has(month, int(n.Month()))
			}
			return (d || w) && has(month, int(n.Month()))
		}
		s, err := Parse(spec, "")
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "now"), 0).UTC()
		for range 3 {
			want := now.Truncate(time.Minute).Add(time.Minute)
			end := now.AddDate(4, 0, 0)
			for want.Before(end) && !(onDay(want) && has(hour, want.Hour()) && has(minute, want.Minute())) {
				if !onDay(want) {
					want = want.Truncate(24*time.Hour).AddDate(0, 0, 1)
					continue
				}
				want = want.Add(time.Minute)
			}
			got, ok := s.Next(now)
			if !want.Before(end) {
				if ok && got.Before(end) {
					t.Fatalf("%s after %v: %v, and the oracle finds none", spec, now, got)
				}
				return
			}
			if !ok || !got.Equal(want) {
				t.Fatalf("%s after %v: %v %v, want %v (%d minutes match)", spec, now, got, ok, want, bits.OnesCount64(minute.set))
			}
			now = got
		}
	})
}

var zones = []string{"", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "America/Asuncion"}

// Each day the schedule is due at its local time, or when the clocks have skipped that time.
func TestEachLocalDayHasOneDailyTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		hour, minute := rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")
		s, err := Parse(fmt.Sprintf("%d %d * * *", minute, hour), zone)
		if err != nil {
			t.Fatal(err)
		}
		day := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "now"), 0).UTC().Truncate(24 * time.Hour)
		now := s.first(day)
		for range 400 { // days
			next, ok := s.Next(now.Add(-time.Second))
			// Samoa skipped 30 December 2011. Everything that was due on that day was due when the 31st began.
			skipped := zone == "Pacific/Apia" && strings.HasPrefix(day.Format(time.DateOnly), "2011-12-3")
			if want := s.first(day.Add(time.Duration(hour*60+minute) * time.Minute)); !skipped && (!ok || !next.Equal(want)) {
				t.Fatalf("%s, day %v: %v, want %v", zone, day, next, want)
			}
			day = day.AddDate(0, 0, 1)
			now = s.first(day)
		}
	})
}

func FuzzNextRises(f *testing.F) {
	for i, spec := range []string{"* * * * *", "30 2 * * *", "*/7 1-5/2 * * 1", "@weekly", "0 0 L * FRI#3", "0 0 30 2 *", "22-2 22-2 15W NOV-FEB FRI-MON", ", , , , ,", "@every 1h"} {
		f.Add(spec, uint8(i), int64(1_772_953_200))
	}
	f.Fuzz(func(t *testing.T, spec string, zone uint8, now int64) {
		s, err := Parse(spec, zones[int(zone)%len(zones)])
		if err != nil {
			return
		}
		before := time.Unix(now%8_000_000_000, now%1_000_000_000)
		for range 20 {
			next, ok := s.Next(before)
			if !ok {
				return
			}
			if !next.After(before) || next.Nanosecond() != 0 {
				t.Fatalf("%q: %v after %v", spec, next, before)
			}
			before = next
		}
	})
}
