// Package calendar computes the instants at which a cron job is due. A job has a time zone and a spec: five
// fields as in crontab(5), or a name such as @daily.
//
// Fixed hours and minutes are local times. In an hour that the clocks show twice, they are due the first time.
// What is due in an hour that the clocks skip is due when that hour ends. If the hours or minutes have *, ? or
// a step, the spec means instants: it is due in every real hour whose local time matches. So it is due in both
// of two equal hours, and not in a skipped one.
//
// It guarantees that Next rises strictly and that equal specs, zones and time zone data give equal instants on
// every host. It does not know the current time. Two hosts may have different time zone data: the host's own,
// or if it has none, the data built into the program.
//
// github.com/netresearch/go-cron parses the spec and finds the next time that matches. It searches only in UTC,
// where no hour is missing or repeated. See docs/dependencies.md.
package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a container without zone files gives the same times

	"github.com/netresearch/go-cron"
)

// searchYears bounds the search for the next time. The 29th of February is a Sunday at least once
// in 40 years.
const searchYears = 40

// star is the bit with which the parser marks a day field that begins with *.
const star = 1 << 63

// Schedule is a parsed spec. The zero Schedule is never due.
type Schedule struct {
	fields   *cron.SpecSchedule
	zone     *time.Location
	instants bool // hours or minutes have *, ? or a step: the spec means real hours, not local times
}

// Parse reads a spec and the IANA name of its time zone, such as "Europe/Berlin"; "" is UTC. If both
// days of the month and days of the week are restricted, one of them has to match, as in crontab(5).
func Parse(spec, zone string) (Schedule, error) {
	fail := func(err error) (Schedule, error) { return Schedule{}, fmt.Errorf("parse the spec %q: %w", spec, err) }
	words := strings.Fields(spec)
	switch {
	case len(words) == 0:
		return fail(errors.New("it is empty; it needs five fields: minute, hour, day, month, weekday"))
	case strings.Contains(words[0], "TZ="):
		return fail(errors.New("it sets a time zone itself; give the zone beside it (--tz)"))
	case words[0] == "@every":
		return fail(errors.New("@every has no fixed times on which hosts could agree; write a step, such as */5 * * * *"))
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Schedule{}, fmt.Errorf("the time zone %q is not known; give a name such as Europe/Berlin", zone)
	}
	parser, err := cron.TryNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.Extended | cron.DowOrDom)
	if err != nil {
		return fail(err)
	}
	parsed, err := parser.WithMaxSearchYears(searchYears).Parse(strings.Join(words, " "))
	if err != nil {
		return fail(err)
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return fail(errors.New("it has no fixed times"))
	}
	s := Schedule{fields: fields, zone: location, instants: words[0] == "@hourly"}
	fields.Location = time.UTC
	if len(words) == 5 {
		s.instants = strings.ContainsAny(words[0]+words[1], "*?/")
		if strings.HasPrefix(words[2], "*") { // */2 too is a star in crontab(5)
			fields.Dom |= star
		}
		if strings.HasPrefix(words[4], "*") {
			fields.Dow |= star
		}
	}
	return s, nil
}

// Next returns the first time after an instant at which the schedule is due, in UTC and in whole seconds. It
// returns false if the schedule is not due in the next 40 years, and so never.
func (s Schedule) Next(after time.Time) (time.Time, bool) {
	if s.fields == nil {
		return time.Time{}, false
	}
	if s.instants {
		return s.nextInstant(after)
	}
	// The search treats local times as UTC. When the clocks repeat an hour, all its local times have been due
	// already.
	for local := shown(after.In(s.zone)); ; {
		local = s.fields.Next(local)
		if local.IsZero() {
			return time.Time{}, false
		}
		if due := s.first(local); due.After(after) {
			return due, true
		}
	}
}

// nextInstant searches each stretch between two changes of the zone's offset, with the stretch's offset.
func (s Schedule) nextInstant(after time.Time) (time.Time, bool) {
	limit := after.AddDate(searchYears, 0, 0)
	from := after.In(s.zone)
	for local := shown(from); from.Before(limit); {
		local = s.fields.Next(local)
		if local.IsZero() {
			break
		}
		due := local.Add(-offset(from))
		_, end, last := stretch(from)
		if last || due.Before(end) {
			return due, true
		}
		from, local = end, shown(end).Add(-time.Nanosecond) // the change itself is in the next stretch
	}
	return time.Time{}, false
}

// first returns the first instant at which the zone's clocks show a local time or a later one.
func (s Schedule) first(local time.Time) time.Time {
	for from := local.Add(-24 * time.Hour).In(s.zone); ; {
		start, end, last := stretch(from)
		due := local.Add(-offset(from))
		if last || due.Before(end) {
			if due.Before(start) { // the clocks skip this local time
				due = start.UTC()
			}
			return due
		}
		from = end
	}
}

// stretch returns the bounds of a time around t in which the zone does not change, and whether that time has no
// end. For the last day of a leap year in the far future, Go returns an end before t.
func stretch(t time.Time) (start, end time.Time, last bool) {
	start, end = t.ZoneBounds()
	if last = end.IsZero(); !last && !end.After(t) {
		end = t.Add(time.Hour)
	}
	return start, end, last
}

// shown returns the local time that clocks show at an instant, as if that local time were UTC.
func shown(t time.Time) time.Time { return t.UTC().Add(offset(t)) }

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
