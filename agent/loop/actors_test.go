package loop

import (
	"crypto/rand"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
)

// A program is put on record before it can read its line.
func TestTheActorsAreOnRecordBeforeTheProgramIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var k *actors.Candidacy
		var told []string
		registry := actors.New(actors.Config{Settings: actors.Settings{Priority: 100}, NewID: rand.Text, Step: lease / 10, Record: func(_ election.Name, p record.Program) {
			lines, _ := k.Take()
			told = append(told, strconv.Itoa(len(lines))+" lines before "+strconv.Itoa(int(p.Told)))
		}})
		r.loop.Actors = registry
		k, _ = registry.Stand(0, actors.Request{Election: pay})
		registry.Lead(0, pay, 4, election.Instant(lease), nil, nil)
		registry.Rise(pay, 5, election.Instant(2*lease), nil)
		if got := strings.Join(told, ", "); got != "1 lines before 4, 1 lines before 5" {
			t.Error(got) // the candidate line; then the elected line, which it reads here
		}
		if got := kinds(k); got != "renewed" {
			t.Errorf("told %q", got)
		}
	})
}
