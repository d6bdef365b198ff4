package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/api"
)

// availability is how an election was led in the last month, as one agent saw it.
type availability struct {
	Election string     `json:"election"`
	Since    *time.Time `json:"since"` // when this agent's history first shows who led, or that no agent did; null: never
	Day      share      `json:"day"`   // the last 24 hours
	Week     share      `json:"week"`
	Month    share      `json:"month"` // the last 30 days
	// The longest time in the month without a known leader, and its start; 0 and null: no such time.
	LongestGapMS int64          `json:"longest_gap_ms"`
	LongestGapAt *time.Time     `json:"longest_gap_at"`
	Changes      map[string]int `json:"changes"` // how often the leader changed in the month, by the reason why the former leadership ended
}

// share divides a window of time. LedPercent is a share of the time that the agent saw; null: it saw nothing.
type share struct {
	LedPercent *float64 `json:"led_percent"`
	LedMS      int64    `json:"led_ms"`
	VacantMS   int64    `json:"vacant_ms"`
	UnseenMS   int64    `json:"unseen_ms"` // the agent did not run, or its history starts later
}

// What an agent saw of an election at some time.
const (
	unseen = iota
	vacant
	led
)

const (
	day   = 24 * time.Hour
	month = 30 * day
)

// availabilityOf computes how an election was led. list has the changes that one agent saw, the oldest first.
func availabilityOf(name string, list []api.Transition, now time.Time) availability {
	a := availability{Election: name, Changes: map[string]int{}}
	at, state, leader := now.Add(-month), unseen, ""
	until := func(end time.Time, next int) { // the state lasted until end
		if end.After(now) {
			end = now
		}
		a.add(state, at, end, now)
		if end.After(at) {
			at = end
		}
		state = next
		if a.Since == nil && next != unseen {
			a.Since = &end
		}
	}
	ends := func(t api.Transition) { // counts the end of a leadership, if the agent saw one
		if state == led && t.Time.After(now.Add(-month)) {
			a.Changes[t.Reason]++
		}
	}
	for _, t := range list {
		switch {
		case t.Type == api.ChangeStarted:
			until(t.Time.Add(-milliseconds(t.DownMS)), unseen)
			until(t.Time, unseen)
		case t.Type == api.ChangePaused:
			before := state
			until(t.Time.Add(-milliseconds(t.DownMS)), unseen)
			until(t.Time, before)
		case t.Type == api.ChangeCommand:
		case t.Leader != nil:
			if state == unseen && t.VacantMS > 0 {
				until(t.Time.Add(-milliseconds(t.VacantMS)), vacant)
			}
			if t.Leader.ID != leader {
				ends(t)
			}
			until(t.Time, led)
			leader = t.Leader.ID
		case t.Type == api.ChangeNoLeader && state != vacant:
			ends(t)
			until(t.Time, vacant)
		}
	}
	until(now, state)
	for s, window := range a.windows() {
		s.UnseenMS = window.Milliseconds() - s.LedMS - s.VacantMS
		if seen := s.LedMS + s.VacantMS; seen > 0 {
			percent := 100 * float64(s.LedMS) / float64(seen)
			s.LedPercent = &percent
		}
	}
	return a
}

func (a *availability) windows() map[*share]time.Duration {
	return map[*share]time.Duration{&a.Day: day, &a.Week: 7 * day, &a.Month: month}
}

// add counts a state that lasted from one instant to another.
func (a *availability) add(state int, from, to, now time.Time) {
	for s, window := range a.windows() {
		begin := now.Add(-window)
		if from.After(begin) {
			begin = from
		}
		switch ms := max(0, to.Sub(begin).Milliseconds()); state {
		case led:
			s.LedMS += ms
		case vacant:
			s.VacantMS += ms
			if ms > a.LongestGapMS {
				a.LongestGapMS, a.LongestGapAt = ms, &begin
			}
		}
	}
}

func availabilityTable(all []availability) string {
	rows, notes := [][]string{{"ELECTION", "DAY", "WEEK", "MONTH", "LONGEST NONE", "CHANGES"}}, ""
	for _, a := range all {
		var why []string
		for _, reason := range slices.Sorted(maps.Keys(a.Changes)) {
			why = append(why, fmt.Sprintf("%d %s", a.Changes[reason], reason))
		}
		rows = append(rows, []string{a.Election, a.Day.text(), a.Week.text(), a.Month.text(), gapText(a.LongestGapMS), strings.Join(why, ", ")})
		switch {
		case a.Since == nil:
			notes += a.Election + ": this agent has not seen who led\n"
		case a.Month.UnseenMS > 0:
			notes += fmt.Sprintf("%s: seen since %s; not seen, and not counted: %s of the day, %s of the week, %s of the month\n", a.Election,
				a.Since.Local().Format("2006-01-02 15:04"), span(a.Day.UnseenMS), span(a.Week.UnseenMS), span(a.Month.UnseenMS))
		}
	}
	return table(rows) + notes
}

// text writes the percentage, rounded down: 100% means that an agent always led.
func (s share) text() string {
	if s.LedPercent == nil {
		return ""
	}
	return fmt.Sprintf("%.3f%%", math.Floor(*s.LedPercent*1000)/1000)
}
