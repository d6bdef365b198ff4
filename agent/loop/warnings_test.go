package loop

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

func TestWarningsAreLoggedOnceAndOnlyIfTheyLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		warn := func(ws ...elector.Warning) {
			r.mu.Lock()
			r.status.Warnings = ws
			r.mu.Unlock()
			r.views <- membership.View{}
			synctest.Wait()
		}
		warn(elector.Warning{Code: "voter_behind", Agent: "brief"})
		if got := r.loop.Picture().Warnings; len(got) != 1 || got[0].Code != "voter_behind" {
			t.Errorf("answers show %+v", got)
		}
		warn()
		lasting := elector.Warning{Code: "voter_disk_failing", Agent: "lasting"}
		warn(lasting)
		since := r.loop.Picture().Warnings[0].Since
		<-time.After(3 * lease) // by the bubble's clock; nothing else happens meanwhile
		warn(lasting)
		if got := r.loop.Picture().Warnings[0].Since; !got.Equal(since) {
			t.Errorf("since %s, then %s", since, got)
		}
		warn()
		text := r.log.String()
		if strings.Contains(text, "brief") || strings.Count(text, `msg="lasting can't write promises`) != 1 || strings.Count(text, "warning ended") != 1 {
			t.Errorf("log:\n%s", text)
		}
		r.cancel()
	})
}

// A lost quorum comes first, whatever the order of the codes.
func TestALostQuorumIsTheFirstWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		r.shows(func(s *elector.Status) {
			s.Warnings = []elector.Warning{{Code: "disk_failing"}, {Code: "quorum_lost"}, {Code: "voter_behind", Agent: "b"}}
		}, "")
		var got []string
		for _, w := range r.loop.Picture().Warnings {
			got = append(got, w.Code)
		}
		if strings.Join(got, " ") != "quorum_lost disk_failing voter_behind" {
			t.Errorf("listed as %v", got)
		}
		r.cancel()
	})
}

// An agent that is given another name stays the voter that the roster lists under its old name.
func TestAnAgentThatRunsUnderAnotherNameThanTheRostersSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		for name, want := range map[string]int{"a": 0, "old": 1} {
			r.mu.Lock()
			r.status.Roster = &election.Roster{Voters: []election.Voter{{Name: name, Peer: me}, {Name: "b", Peer: "b"}}}
			r.mu.Unlock()
			r.views <- membership.View{}
			synctest.Wait()
			got := r.loop.Picture().Warnings
			if len(got) != want || want == 1 && (got[0].Code != "renamed" || !strings.Contains(got[0].Message, "--name old")) {
				t.Errorf("roster names it %s: %+v", name, got)
			}
		}
		r.cancel()
	})
}

func TestRefusalsAreWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		r.views <- membership.View{
			Members: []membership.Member{{Member: election.Member{Peer: "b", Name: "b"}}},
			Refused: []membership.Refusal{{Cause: membership.CauseName, Name: "a", Err: errors.New("two agents have the name a")}},
		}
		r.hear(transport.Refused{Peer: "b", Name: "b", Err: errors.New("runs with --lease 2s")})
		synctest.Wait()
		if got := r.loop.Picture().Warnings; len(got) != 2 || got[0].Code != "name_conflict" || got[1].Code != "refused_peer" ||
			!strings.Contains(got[1].Message, "--lease 2s") {
			t.Errorf("got %+v", got)
		}
		r.hear(transport.Connected{Peer: "b"})
		r.views <- membership.View{}
		synctest.Wait()
		if got := r.loop.Picture().Warnings; len(got) != 0 {
			t.Errorf("still %+v", got)
		}
		r.cancel()
	})
}

// TestAnAgentWhoseIdentityRunsElsewhereIsBarred: two agents with one identity could give its vote twice.
func TestAnAgentWhoseIdentityRunsElsewhereIsBarred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		barred := func() (found []election.Barred) {
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, in := range r.inputs {
				if b, ok := in.(election.Barred); ok {
					found = append(found, b)
				}
			}
			return found
		}
		r.views <- membership.View{Refused: []membership.Refusal{{Cause: membership.CauseName, Err: errors.New("a name")}}}
		if b := barred(); len(b) > 0 {
			t.Fatalf("barred %+v by the name of another", b)
		}
		r.views <- membership.View{Refused: []membership.Refusal{{Cause: membership.CauseIdentity, Self: true, Err: errors.New("a copy runs at 10.0.0.9.")}}}
		if b := barred(); len(b) != 1 || b[0].Code != warnIdentity {
			t.Errorf("barred %+v", b)
		}
		r.cancel()
	})
}
