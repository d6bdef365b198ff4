package watch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/agent/watch"
	"github.com/doyen-election/doyen/api"
)

func publish(h *watch.Hub, election string, n int) {
	for range n {
		h.Publish(api.Change{Election: election, Type: api.ChangeLeader})
	}
}

func follow(t *testing.T, h *watch.Hub, after uint64) *watch.Follower {
	t.Helper()
	f, err := h.Follow("default", after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func indexes(changes []*watch.Change) []uint64 {
	var out []uint64
	for _, c := range changes {
		out = append(out, c.Index)
	}
	return out
}

func TestAFollowerSeesItsOwnElectionInOrder(t *testing.T) {
	h := watch.NewHub(100)
	publish(h, "default", 1)
	f := follow(t, h, 0)
	publish(h, "payments", 1)
	publish(h, "default", 2)
	if !f.Wait(t.Context()) {
		t.Fatal("nothing to take")
	}
	changes, missed, index := f.Take()
	if got := indexes(changes); len(got) != 2 || got[0] != 103 || got[1] != 104 || missed != 0 || index != 104 {
		t.Errorf("got %v, %d missed, index %d; want 103 and 104, none missed, 104", got, missed, index)
	}
	if h.Index("payments") != 102 || h.Index("other") != 100 {
		t.Errorf("indexes %d and %d, want 102 and 100", h.Index("payments"), h.Index("other"))
	}
}

func TestOneWhoComesBackGetsWhatFollowed(t *testing.T) {
	h := watch.NewHub(100)
	publish(h, "default", 5)
	changes, missed, _ := follow(t, h, 103).Take()
	if got := indexes(changes); len(got) != 2 || got[0] != 104 || missed != 0 {
		t.Errorf("got %v, %d missed; want 104 and 105, none missed", got, missed)
	}
	if changes, missed, _ := follow(t, h, 105).Take(); len(changes) != 0 || missed != 0 {
		t.Errorf("up to date, but got %v, %d missed", indexes(changes), missed)
	}
}

func TestAnIndexThatIsTooOldOrOfAnotherLifeIsToldSo(t *testing.T) {
	h := watch.NewHub(100)
	publish(h, "default", 1500)
	for _, after := range []uint64{99, 100, 570, 1601, 1 << 60} {
		if _, missed, index := follow(t, h, after).Take(); missed == 0 || index != 1600 {
			t.Errorf("after %d: %d missed, index %d; want some missed, 1600", after, missed, index)
		}
	}
	if changes, missed, _ := follow(t, h, 1500).Take(); len(changes) != 100 || missed != 0 {
		t.Errorf("got %d changes, %d missed; want 100, none", len(changes), missed)
	}
}

// A process that goes on from an earlier run also has that run's followers: they get all new changes.
func TestAFollowerOfTheRunBeforeGoesOn(t *testing.T) {
	h := watch.NewHub(100)
	h.GoesOn()
	publish(h, "default", 2)
	for _, after := range []uint64{1, 99, 100} {
		changes, missed, _ := follow(t, h, after).Take()
		if got := indexes(changes); len(got) != 2 || got[0] != 101 || missed != 0 {
			t.Errorf("after %d: %v, %d missed; want 101 and 102, none missed", after, got, missed)
		}
	}
	if _, missed, _ := follow(t, h, 103).Take(); missed == 0 {
		t.Error("an index that is yet to come is taken for known")
	}
	publish(h, "default", 1500)
	if _, missed, _ := follow(t, h, 99).Take(); missed == 0 {
		t.Error("changes that are not kept any more are not missed")
	}
}

func TestALaggardIsToldHowMuchItMissed(t *testing.T) {
	h := watch.NewHub(0)
	f := follow(t, h, 0)
	publish(h, "default", 1000)
	if changes, missed, index := f.Take(); len(changes) != 0 || missed != 1000 || index != 1000 {
		t.Errorf("got %d changes, %d missed, index %d; want 0, 1000, 1000", len(changes), missed, index)
	}
	publish(h, "default", 1)
	if changes, missed, _ := f.Take(); len(changes) != 1 || changes[0].Index != 1001 || missed != 0 {
		t.Errorf("afterwards got %v, %d missed; want 1001", indexes(changes), missed)
	}
}

func TestFollowersEnd(t *testing.T) {
	h := watch.NewHub(0)
	follow(t, h, 0).Close()
	f := follow(t, h, 0)
	h.Close()
	h.Close()
	if f.Wait(t.Context()) {
		t.Error("more after the end")
	}
	f.Close()
	if _, err := h.Follow("default", 0); !errors.Is(err, watch.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestAChangeIsEncodedOnceForAll(t *testing.T) {
	h := watch.NewHub(0)
	a, b := follow(t, h, 0), follow(t, h, 0)
	publish(h, "default", 1)
	one, _, _ := a.Take()
	other, _, _ := b.Take()
	first, err := one[0].Line()
	if err != nil || !strings.HasPrefix(string(first), `{"index":1,`) || first[len(first)-1] != '\n' {
		t.Fatalf("%q: %v", first, err)
	}
	if second, _ := other[0].Line(); &first[0] != &second[0] {
		t.Error("the other follower has a line of its own")
	}
}

func TestAnElectionThatIsForgottenGoesOnBehindItsLastChange(t *testing.T) {
	h := watch.NewHub(100)
	publish(h, "default", 1)
	publish(h, "payments", 2000)
	if i := h.Index("default"); i < 101 || i >= h.Index("payments") {
		t.Fatalf("index %d", i)
	}
	f := follow(t, h, h.Index("default"))
	publish(h, "default", 1)
	if changes, missed, index := f.Take(); len(changes) != 1 || missed != 0 || index != 2102 {
		t.Errorf("got %v, %d missed, index %d", indexes(changes), missed, index)
	}
}

// BenchmarkPublish measures what the publisher pays for a thousand followers.
func BenchmarkPublish(b *testing.B) {
	h := watch.NewHub(0)
	for range 1000 {
		f, err := h.Follow("default", 0)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
	}
	b.ReportAllocs()
	for b.Loop() {
		publish(h, "default", 1)
	}
}

// A line of Show is not a change: the index stays, and a follower that returns does not get the line.
func TestWhatIsShownIsNeitherNumberedNorKept(t *testing.T) {
	h := watch.NewHub(100)
	publish(h, "default", 1)
	f := follow(t, h, 0)
	if got := h.Followed(); len(got) != 1 || got[0] != "default" {
		t.Errorf("followed are %v", got)
	}
	h.Show(api.Change{Election: "default", Type: api.ChangeCandidates, Index: h.Index("default")})
	h.Show(api.Change{Election: "payments", Type: api.ChangeCandidates})
	changes, missed, index := f.Take()
	if got := indexes(changes); len(got) != 1 || got[0] != 101 || missed != 0 || index != 101 {
		t.Errorf("got %v, %d missed, index %d; want one line with 101", got, missed, index)
	}
	if changes, missed, _ := follow(t, h, 101).Take(); len(changes) != 0 || missed != 0 {
		t.Errorf("one who comes back gets %v, %d missed", indexes(changes), missed)
	}
	for range 200 {
		h.Show(api.Change{Election: "default", Type: api.ChangeMeta})
	}
	if changes, missed, _ := f.Take(); len(changes) != 0 || missed != 200 {
		t.Errorf("a laggard has %d lines, %d missed", len(changes), missed)
	}
}
