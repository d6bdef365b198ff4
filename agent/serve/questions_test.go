package serve

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

const second = election.Instant(time.Second)

// asked counts how many of n questions, one after another, are accepted at that instant.
func (q *questions) asked(now election.Instant, uid uint32, favoured bool, n int) (count int) {
	for range n {
		if q.ask(now, uid, favoured, 1) == nil {
			count++
		}
	}
	return count
}

func TestAUserAsksTheVotersOnlySoOften(t *testing.T) {
	q := newQuestions()
	if n := q.asked(0, 1000, false, 500); n != burstOfUser {
		t.Errorf("%d questions at once", n)
	}
	if n := q.asked(0, 1001, false, 10); n != 10 {
		t.Errorf("another user may ask %d times beside it", n)
	}
	if n := q.asked(second/2, 1000, false, 500); n != questionsOfUser/2 {
		t.Errorf("%d questions in half a second", n)
	}
	if n := q.asked(100*second, 1000, false, 500); n != burstOfUser {
		t.Errorf("%d questions at once after a rest", n)
	}
	if refusal := q.ask(200*second, 1000, false, burstOfUser+1); refusal == nil {
		t.Error("more at once than one may ever ask")
	}
}

func TestAllUsersTogetherAskTheVotersOnlySoOften(t *testing.T) {
	q, total := newQuestions(), 0
	for uid := range uint32(20) {
		total += q.asked(0, uid, false, 500)
	}
	if total != burstOfAll {
		t.Errorf("%d questions at once", total)
	}
	if n := q.asked(second/10, 0, true, 500); n != questionsOfAll/10 {
		t.Errorf("root asks %d times in a tenth of a second", n)
	}
}
