package observe_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/observe"
)

const never = election.Never

func TestOverlaps(t *testing.T) {
	const lease = 100
	for name, test := range map[string]struct {
		claims []observe.Claim
		want   time.Duration
	}{
		"none": {nil, 0},
		"one after the other, to the nanosecond": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Ended: 50}, {Agent: "b", Term: 2, Start: 50, Ended: never}}, 0},
		"two at once": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Ended: 50}, {Agent: "b", Term: 2, Start: 40, Ended: never}}, 10},
		"order does not matter": {[]observe.Claim{
			{Agent: "b", Term: 2, Start: 40, Ended: never}, {Agent: "a", Term: 1, Start: 10, Ended: 50}}, 10},
		"one within the other": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Ended: 100}, {Agent: "b", Term: 2, Start: 40, Ended: 60}}, 20},
		"three at once count once": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 0, Ended: 100}, {Agent: "b", Term: 2, Start: 10, Ended: 50}, {Agent: "c", Term: 3, Start: 30, Ended: 70}}, 60},
		"the same agent under a higher term": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Ended: 50}, {Agent: "a", Term: 2, Start: 40, Ended: never}}, 0},
		"a killed leader's deadline counts": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Until: 80, Ended: never, Silent: true}, {Agent: "b", Term: 2, Start: 70, Ended: never}}, 10},
		"and is over when it is over": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Until: 80, Ended: never, Silent: true}, {Agent: "b", Term: 2, Start: 80, Ended: never}}, 0},
		"a frozen leader that says late that it ended": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Until: 80, Ended: 500, Silent: true}, {Agent: "b", Term: 2, Start: 90, Ended: never}}, 0},
		"a frozen leader that was thawed and ended before its deadline": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Until: 80, Ended: 30, Silent: true}, {Agent: "b", Term: 2, Start: 40, Ended: never}}, 0},
		"a killed leader that told no deadline may have told a whole lease": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Ended: never, Silent: true}, {Agent: "b", Term: 2, Start: 90, Ended: never}}, 20},
		"a leader that was not silent goes by its own word": {[]observe.Claim{
			{Agent: "a", Term: 1, Start: 10, Until: 80, Ended: 20}, {Agent: "b", Term: 2, Start: 21, Ended: never}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := observe.Together(observe.Overlaps(test.claims, lease), election.Never); got != test.want {
				t.Errorf("two led at once for %d, want %d: %+v", got, test.want, observe.Overlaps(test.claims, lease))
			}
		})
	}
}

func TestOverlapsWithoutLeasesGoByTheEnds(t *testing.T) {
	claims := []observe.Claim{
		{Agent: "a", Term: 1, Start: 10, Ended: 50, Silent: true}, {Agent: "b", Term: 2, Start: 40, Ended: never},
	}
	if got := observe.Together(observe.Overlaps(claims, 0), election.Never); got != 10 {
		t.Errorf("two led at once for %d, want 10", got)
	}
}

func TestAnOverlapThatGoesOnIsCountedUntilNow(t *testing.T) {
	goesOn := []observe.OverlapSpan{{From: 10, To: election.Never}}
	if got := observe.Together(goesOn, 25); got != 15 {
		t.Errorf("together for %d, want 15", got)
	}
}
