package serve_test

import (
	"bufio"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/elector"
)

// follower reads the lines of a watch.
type follower struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (a *agent) watch(t *testing.T, query string) *follower {
	t.Helper()
	response, err := a.client.Get("http://d/v1/elections/default/watch" + query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return &follower{t, bufio.NewScanner(response.Body)}
}

func (f *follower) next() api.Change {
	f.t.Helper()
	if !f.lines.Scan() {
		f.t.Fatalf("the watch ended: %v", f.lines.Err())
	}
	var c api.Change
	if err := json.Unmarshal(f.lines.Bytes(), &c); err != nil {
		f.t.Fatal(err)
	}
	return c
}

func TestAWatchBeginsWithASnapshotAndGoesOnInOrder(t *testing.T) {
	a := stand(t)
	f := a.watch(t, "")
	if c := f.next(); c.Type != "snapshot" || c.Index != 10 || !c.IsLeader || c.Snapshot == nil || c.Snapshot.Term != 7 {
		t.Errorf("first line %+v", c)
	}
	for want := uint64(11); want < 14; want++ {
		a.hub.Publish(api.Change{Election: "default", Type: api.ChangeNoLeader})
		if c := f.next(); c.Index != want || c.Type != "no_leader" {
			t.Errorf("got %+v, want index %d", c, want)
		}
	}
	if c := a.watch(t, "?after=3").next(); c.Type != "lagged" || c.Missed == 0 || c.Index != 13 || c.Snapshot == nil {
		t.Errorf("resumed from too far back with %+v, want lagged", c)
	}
}

// A watch that resumes begins with a snapshot, and then gets the changes that it missed. So a script that needs
// only the state reads one line, whether it resumes or not.
func TestAWatchThatGoesOnBehindAnIndexBeginsWithASnapshotToo(t *testing.T) {
	a := stand(t)
	for range 3 {
		a.hub.Publish(api.Change{Election: "default", Type: api.ChangeNoLeader}) // 11 to 13
	}
	for _, after := range []uint64{10, 12, 13} {
		f := a.watch(t, "?after="+strconv.FormatUint(after, 10))
		if c := f.next(); c.Type != "snapshot" || c.Index != after || c.Snapshot == nil || c.Snapshot.Term != 7 || c.Missed != 0 {
			t.Errorf("after %d: first line %+v", after, c)
		}
		for want := after + 1; want <= 13; want++ {
			if c := f.next(); c.Index != want || c.Type != "no_leader" {
				t.Errorf("after %d: got %+v, want index %d", after, c, want)
			}
		}
		if after == 13 { // nothing was missed: what comes next is new
			a.hub.Publish(api.Change{Election: "default", Type: api.ChangeLeader})
			if c := f.next(); c.Index != 14 || c.Type != "leader" {
				t.Errorf("live: %+v", c)
			}
		}
	}
	for _, after := range []string{"", "0"} { // a watch that does not resume has missed nothing
		if c := a.watch(t, "?after="+after).next(); c.Type != "snapshot" || c.Index != 14 || c.Snapshot == nil || c.Missed != 0 {
			t.Errorf("after %q: %+v, want a snapshot", after, c)
		}
	}
	for _, after := range []string{"3", "99"} {
		if c := a.watch(t, "?after="+after).next(); c.Type != "lagged" || c.Missed == 0 || c.Index != 14 || c.Snapshot == nil {
			t.Errorf("after %s, which is unknown: %+v, want lagged", after, c)
		}
	}
}

func TestAWatchEndsWithTheAgent(t *testing.T) {
	a := stand(t)
	f := a.watch(t, "")
	f.next()
	a.hub.Close()
	if f.lines.Scan() {
		t.Errorf("another line: %s", f.lines.Text())
	}
	if status, _ := a.do(t, "GET", "/v1/elections/default/watch", ""); status != 503 {
		t.Errorf("a new watch: %d", status)
	}
}

// A follower that reads nothing learns later how much it missed. The publisher never waits for it.
func TestAWatcherThatFallsBehindIsToldSo(t *testing.T) {
	a := stand(t)
	f := a.watch(t, "")
	f.next()
	long := strings.Repeat("x", 4096)
	for range 2000 {
		a.hub.Publish(api.Change{Election: "default", Type: api.ChangeLeader, Reason: long})
	}
	seen, last := uint64(0), uint64(10)
	for last < 2010 {
		c := f.next()
		if c.Type == "lagged" {
			seen += c.Missed
		} else {
			seen++
			if c.Index != last+1 {
				t.Fatalf("%d after %d without a word", c.Index, last)
			}
		}
		last = c.Index
	}
	if seen != 2000 {
		t.Errorf("accounted for %d changes of 2000", seen)
	}
}

// A program can watch an election before its first candidate, and so need not ask again and again.
func TestAWatchWaitsForAnElectionThatDoesNotExistYet(t *testing.T) {
	a := stand(t)
	response, err := a.client.Get("http://d/v1/elections/payments/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	f := &follower{t, bufio.NewScanner(response.Body)}
	if c := f.next(); c.Type != api.ChangeSnapshot || c.Leader != nil || c.Snapshot == nil || c.Snapshot.State != api.StateIdle || c.Snapshot.Candidates == nil {
		t.Errorf("first line %+v, %+v", c, c.Snapshot)
	}
	a.hub.Publish(api.Change{Election: "payments", Type: api.ChangeLeader})
	if c := f.next(); c.Type != api.ChangeLeader || c.Election != "payments" {
		t.Errorf("then %+v", c)
	}
}

func TestALeadersMetaIsShownWhereItIsNamed(t *testing.T) {
	a := stand(t)
	p := *a.picture.Load()
	status, contest := *p.Status, *p.Status.Contests[0]
	contest.Meta = "10.0.0.1:80"
	status.Contests = []*elector.ContestStatus{&contest}
	p.Status = &status
	a.picture.Store(&p)
	if c := a.watch(t, "").next(); c.Leader == nil || c.Leader.Meta != contest.Meta || c.Snapshot.Leader.Meta != contest.Meta {
		t.Errorf("the snapshot: %+v", c)
	}
	for _, path := range []string{"/v1/elections/default", "/v1/elections"} {
		if _, text := a.do(t, "GET", path, ""); !strings.Contains(text, contest.Meta) {
			t.Errorf("%s: %s", path, text)
		}
	}
	a.now.Add(int64(time.Hour)) // the lease has ended
	if _, text := a.do(t, "GET", "/v1/elections/default", ""); strings.Contains(text, contest.Meta) {
		t.Errorf("without a leader: %s", text)
	}
}
