package loop

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doyen-election/doyen/agent/serve"
	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/elector"
	"github.com/doyen-election/doyen/membership"
	"github.com/doyen-election/doyen/transport"
)

func TestAnOutputIsCarriedOutInItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, once[election.Tick](election.Output{
			Withdraw: []election.Withdrawal{{Election: "default", Term: 3}},
			Persist:  &election.Persist{Write: 1},
			Send:     []election.Envelope{{To: "b", Message: election.Release{}}},
			Announce: []election.Announcement{{Election: "default", Event: election.NoLeader, Term: 3}},
			WakeAt:   election.Never,
		})).start(t)
		synctest.Wait()
		if got := r.happened(); got != "send:b write" && got != "write send:b" {
			t.Errorf("happened: %s", got)
		}
		if r.loop.Hub.Index("default") != 2 {
			t.Error("not announced")
		}
		for _, want := range []election.Input{
			election.Stopped{Election: "default", Term: 3}, election.Persisted{Write: 1},
		} {
			if !r.got(want) {
				t.Errorf("the core did not get %#v", want)
			}
		}
		r.cancel()
	})
}

func TestReadersSeeTheEndOfALeadershipBeforeItsReleaseIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, func(in election.Input) election.Output {
			if _, ok := in.(election.Shutdown); !ok {
				return election.Output{WakeAt: election.Never}
			}
			r.status.Contests = []*elector.ContestStatus{{Election: "default", Term: 4}} // mu is held
			return election.Output{Send: []election.Envelope{{To: "b", Message: election.Release{}}}, WakeAt: election.Never}
		})
		r.loop.Network = sendSpy{r, func() {
			if c := r.loop.Picture().Status.Contests; len(c) != 1 || c[0].Term != 4 {
				t.Errorf("at the send, readers still saw %+v", c)
			}
		}}
		r.start(t)
		close(r.loop.Shutdown)
		synctest.Wait()
		if !strings.Contains(r.happened(), "send:b") {
			t.Error("not sent")
		}
		<-r.loop.Released
		r.cancel()
	})
}

type sendSpy struct {
	*rig
	look func()
}

func (s sendSpy) Send(p election.PeerID, m election.Message) bool {
	s.look()
	return s.rig.Send(p, m)
}

func TestTheTimerRingsWhenTheCoreAskedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ticks []time.Duration
		began := time.Now()
		r := newRig(t, func(in election.Input) election.Output {
			out := election.Output{WakeAt: election.Never}
			if _, ok := in.(election.Tick); ok {
				ticks = append(ticks, time.Since(began))
				if len(ticks) < 4 {
					out.WakeAt = election.Instant(time.Duration(len(ticks)) * 10 * time.Second)
				}
			}
			return out
		})
		r.start(t)
		<-time.After(time.Minute) // by the bubble's clock
		synctest.Wait()
		if want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}; !reflect.DeepEqual(ticks, want) {
			t.Errorf("ticks at %v, want %v", ticks, want)
		}
		r.cancel()
	})
}

func TestAWriteThatFailsIsToldAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := uint64(0)
		r := newRig(t, func(in election.Input) election.Output {
			out := election.Output{WakeAt: election.Never}
			switch in.(type) {
			case election.Tick, election.PersistFailed:
				if writes < 3 {
					writes++
					out.Persist = &election.Persist{Write: writes}
				}
			}
			return out
		})
		r.full = errors.New("no space left on device")
		r.start(t)
		synctest.Wait()
		if !r.got(election.PersistFailed{Write: 3}) {
			t.Error("the core was not told")
		}
		if n := strings.Count(r.log.String(), "no space left"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &r.log)
		}
		r.full = nil
		writes = 2
		r.hear(transport.Connected{Peer: "b"})
		r.loop.Writer.requests <- election.Persist{Write: 4}
		synctest.Wait()
		if n := strings.Count(r.log.String(), "can be written again"); n != 1 || !r.got(election.Persisted{Write: 4}) {
			t.Errorf("the recovery was logged %d times:\n%s", n, &r.log)
		}
		r.cancel()
	})
}

func TestEventsBecomeInputsAndViewsSetThePeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		r.views <- membership.View{Members: []membership.Member{
			{Member: election.Member{Peer: me, Name: "a"}}, {Member: election.Member{Peer: "b", Name: "bob"}},
		}}
		r.hear(transport.Connected{Peer: "b", Hello: transport.Hello{Lineage: 5}})
		r.hear(transport.Message{Peer: "b", Message: election.Inquiry{ID: 3}})
		synctest.Wait()
		if p := r.loop.Picture(); !p.Connected["b"] || p.Names["b"] != "bob" {
			t.Errorf("readers see %v, %v", p.Connected, p.Names)
		}
		r.hear(transport.Lost{Peer: "b", Err: errors.New("gone")})
		synctest.Wait()
		if r.happened() != "peer:b" || r.loop.Picture().Connected["b"] {
			t.Errorf("happened: %s, connected: %v", r.happened(), r.loop.Picture().Connected)
		}
		for _, want := range []election.Input{
			election.PeerConnected{Peer: "b", Lineage: 5},
			election.Received{From: "b", Message: election.Inquiry{ID: 3}},
			election.PeerLost{Peer: "b"},
		} {
			if !r.got(want) {
				t.Errorf("the core did not get %#v", want)
			}
		}
		r.cancel()
	})
}

// A peer that has not answered a heartbeat for a lease has a dead connection. A peer that was sent no
// heartbeat is not suspected.
func TestAPeerThatAnswersNoHeartbeatIsSuspected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, core := newRig(t, nil), alone(t)
		born := time.Now()
		r.answer = func(in election.Input) election.Output { return core.Step(election.Instant(time.Since(born)), in) }
		r.start(t)
		r.hear(transport.Connected{Peer: "b"}, transport.Message{Peer: "b", Message: election.Report{}})
		<-time.After(time.Hour) // by the bubble's clock; no answer was expected
		if strings.Contains(r.happened(), "suspect") {
			t.Fatal("suspected though it was asked nothing")
		}
		campaign := func(id election.RequestID) election.Input {
			return election.Campaign{Election: election.Default, Priority: 100, Request: id}
		}
		if _, err := r.loop.Ask(t.Context(), campaign); err != nil { // the agent leads, and sends heartbeats
			t.Fatal(err)
		}
		for range 20 {
			<-time.After(lease / 2)
			r.hear(transport.Message{Peer: "b", Message: election.HeartbeatAck{}})
		}
		synctest.Wait()
		if strings.Contains(r.happened(), "suspect") {
			t.Fatal("suspected though it answers")
		}
		<-time.After(2 * lease)
		synctest.Wait()
		if n := strings.Count(r.happened(), "suspect:b"); n != 1 {
			t.Errorf("suspected %d times, want once", n)
		}
		r.cancel()
	})
}

// alone returns the elector of an agent that is alone, and so wins every election.
func alone(t *testing.T) *elector.Elector {
	e, err := elector.New(election.Config{Self: election.Holder{Peer: me, Lineage: 1}, Name: "a", Algorithm: election.Bully,
		Timing: election.Timing{Heartbeat: lease / 6, Lease: lease}, Drift: election.DefaultDrift},
		election.State{Peer: me}, nil, 0, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestCommandsGetTheirReplyAndEndWithTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(in election.Input) election.Output {
			out := election.Output{WakeAt: election.Never}
			if in, ok := in.(election.Resign); ok && in.Election == "default" {
				out.Replies = []election.Reply{{Request: in.Request, Refusal: &election.Refusal{Why: election.DeniedHandingOver}}}
			}
			return out
		})
		r.start(t)
		resign := func(name election.Name) func(election.RequestID) election.Input {
			return func(id election.RequestID) election.Input { return election.Resign{Election: name, Request: id} }
		}
		reply, err := r.loop.Ask(t.Context(), resign("default"))
		if err != nil || reply.Refusal == nil || reply.Refusal.Why != election.DeniedHandingOver {
			t.Errorf("%+v, %v", reply, err)
		}
		if err := r.loop.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range maxPending {
			go func() { _, _ = r.loop.Ask(ctx, resign("silent")) }()
		}
		synctest.Wait()
		if reply, err := r.loop.Ask(t.Context(), resign("default")); err != nil || reply.Refusal == nil || reply.Refusal.Why != words.TooManyCommands {
			t.Errorf("with too many: %+v, %v", reply, err)
		}
		<-ctx.Done()
		synctest.Wait()
		if reply, _ := r.loop.Ask(t.Context(), resign("default")); reply.Refusal.Why == words.TooManyCommands {
			t.Errorf("forgotten commands still count: %+v", reply.Refusal)
		}
		r.cancel()
		synctest.Wait()
		if _, err := r.loop.Ask(t.Context(), resign("silent")); err == nil {
			t.Error("a stopped loop took a command")
		}
	})
}

// A change of the roster takes many leases. Commands in the meantime must not make the loop forget that a
// reply to the change is still due.
func TestAReplyThatTakesLongIsNotLostToOtherCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow election.RequestID
		r := newRig(t, func(in election.Input) election.Output {
			out := election.Output{WakeAt: election.Never}
			switch in := in.(type) {
			case election.ChangeRoster:
				slow = in.Request
			case election.Resign:
				out.Replies = []election.Reply{{Request: in.Request}, {Request: slow}}
			}
			return out
		})
		r.start(t)
		changed := make(chan error, 1)
		go func() {
			_, err := r.loop.Ask(t.Context(), func(id election.RequestID) election.Input { return election.ChangeRoster{Request: id} })
			changed <- err
		}()
		<-time.After(10 * lease) // by the bubble's clock
		if _, err := r.loop.Ask(t.Context(), func(id election.RequestID) election.Input { return election.Resign{Request: id} }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-changed:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the change is not answered")
		}
		r.cancel()
	})
}

func TestDrainIsToldToTheOthersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(t)
		synctest.Wait()
		r.mu.Lock()
		r.status.Draining = true
		r.mu.Unlock()
		for range 3 {
			r.views <- membership.View{}
		}
		synctest.Wait()
		if r.happened() != "drained" {
			t.Errorf("happened: %s", r.happened())
		}
		r.cancel()
	})
}

// With a thousand elections a picture costs more than a message. So messages that come together are shown in
// one picture, but the start or end of a leadership is shown at once.
func TestReadersSeeTheOutcomeOfManyMessagesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pictures, loses := 0, false
		var last *serve.Picture
		var r *rig
		r = newRig(t, func(in election.Input) election.Output {
			if p := r.loop.Picture(); p != last {
				last, pictures = p, pictures+1
			}
			out := election.Output{WakeAt: election.Never}
			if m, ok := in.(election.Received); ok && loses && m.Message == (election.Inquiry{ID: 5}) {
				out.Announce = []election.Announcement{{Election: "default", Event: election.NoLeader}}
			}
			return out
		})
		r.start(t) // not earlier, since the loop's goroutine reads r
		synctest.Wait()
		many := []transport.Event{transport.Connected{Peer: "b"}}
		for i := range 10 {
			many = append(many, transport.Message{Peer: "b", Message: election.Inquiry{ID: uint64(i)}})
		}
		pictures = 0
		r.hear(many[0])
		r.hear(many[1:]...)
		synctest.Wait()
		if pictures > 2 {
			t.Errorf("%d pictures while 10 messages were handled", pictures)
		}
		if seen := r.loop.Picture(); seen == last {
			t.Error("the outcome is not shown at the end")
		}
		loses, pictures = true, 0
		r.hear(many[1:]...)
		synctest.Wait()
		if pictures != 2 { // one for the messages before, and one for the loss
			t.Errorf("%d pictures while the sixth of 10 messages ended a leadership", pictures)
		}
		r.cancel()
	})
}
