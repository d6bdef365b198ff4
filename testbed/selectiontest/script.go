package selectiontest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
)

// stormLimit is more messages than any script should cause.
const stormLimit = 10_000

// RunScripts runs the golden traces of a folder. Each directive acts on the network and prints
// what happened:
//
//	agents               a new network; the input has a line NAME PRIORITY for each agent
//	lease end=50ms       the lost leader's lease ends at that time
//	start NAME…          the named agents begin a round
//	deliver [n=1]        deliver that many messages, all by default
//	lose from=a to=b     lose the oldest message under way on that link
//	settle               deliver and let time pass until there is a nominee
//	advance by=100ms     let time pass; nothing is delivered
//	kill NAME…           stop the named agents; the others do not know
//	notice NAME…         the named agents leave the fields of all
//	join NAME p=5        a new agent with priority 5, seen by all
//	unable NAME why=…    the agent can't lead; able NAME: it can again
//	standback NAME better=NAME
//	confirm NAME term=7  the voters confirmed the agent
//	say from=a to=b what=coordinator|elected|answer term=3 leader=a round=1
//	state                who is active, who leads, what was sent
func RunScripts(t *testing.T, dir string, m Maker) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		n := New(t, m)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "agents" {
				n = New(t, m)
				return n.addAll(t, d)
			}
			if !n.arrange(t, d) && !n.act(t, d) {
				d.Fatalf(t, "unknown directive %q", d.Cmd)
			}
			return n.Trace()
		})
	})
}

func (n *Network) addAll(t *testing.T, d *datadriven.TestData) string {
	for _, line := range strings.Split(d.Input, "\n") {
		name, number, _ := strings.Cut(line, " ")
		priority, err := strconv.Atoi(number)
		if err != nil {
			d.Fatalf(t, "parse agent %q: %v", line, err)
		}
		n.Add(election.PeerID(name), priority)
	}
	n.NoVoters = d.HasArg("no-voters")
	best := each.Of(n.agents, func(a *Agent) string { return string(a.Rank.Peer) })
	return "best first: " + strings.Join(best, " ") + "\n"
}

// arrange carries out the directives that change the circumstances.
func (n *Network) arrange(t *testing.T, d *datadriven.TestData) bool {
	switch d.Cmd {
	case "lease":
		n.LeaseEnd = election.Instant(duration(t, d, "end"))
	case "kill":
		eachName(d, n.Kill)
	case "notice":
		eachName(d, n.Notice)
	case "join":
		var priority int
		d.ScanArgs(t, "p", &priority)
		eachName(d, func(id election.PeerID) { n.Add(id, priority) })
		n.TickAll()
	case "unable":
		var why string
		d.ScanArgs(t, "why", &why)
		eachName(d, func(id election.PeerID) { n.Agent(id).Unable = why; n.Tick(n.Agent(id)) })
	case "able":
		eachName(d, func(id election.PeerID) { n.Agent(id).Unable = ""; n.Tick(n.Agent(id)) })
	default:
		return false
	}
	return true
}

// act carries out the directives that make something happen.
func (n *Network) act(t *testing.T, d *datadriven.TestData) bool {
	switch d.Cmd {
	case "start":
		eachName(d, n.Start)
	case "deliver":
		count := n.InFlight()
		if d.HasArg("n") {
			d.ScanArgs(t, "n", &count)
			for range count {
				n.Deliver()
			}
			break
		}
		n.DeliverAll(stormLimit)
	case "lose":
		from, to := name(t, d, "from"), name(t, d, "to")
		i := slices.IndexFunc(n.queue, func(m flight) bool { return m.from == from && m.to == to })
		if i < 0 {
			d.Fatalf(t, "nothing is under way from %s to %s", from, to)
		}
		n.Discard(i)
	case "settle":
		n.Settle(n.Now.Add(10*time.Second), stormLimit)
	case "advance":
		n.AdvanceTo(n.Now.Add(duration(t, d, "by")))
	case "standback":
		better := name(t, d, "better")
		eachName(d, func(id election.PeerID) { n.StandBack(id, better) })
	case "confirm":
		var term uint64
		d.ScanArgs(t, "term", &term)
		eachName(d, func(id election.PeerID) { n.Confirm(id, election.Term(term)) })
	case "say":
		n.Send(name(t, d, "from"), name(t, d, "to"), said(t, d))
	case "state":
		n.state()
	default:
		return false
	}
	return true
}

func said(t *testing.T, d *datadriven.TestData) election.Message {
	var what string
	var term, round uint64
	d.ScanArgs(t, "what", &what)
	d.MaybeScanArgs(t, "term", &term)
	d.MaybeScanArgs(t, "round", &round)
	leader := election.Holder{Peer: name(t, d, "from"), Lineage: 1}
	if d.HasArg("leader") {
		leader.Peer = name(t, d, "leader")
	}
	switch what {
	case "coordinator":
		return election.BullyCoordinator{Election: Election, Term: election.Term(term), Leader: leader}
	case "elected":
		return election.RingElected{Election: Election, Term: election.Term(term), Leader: leader}
	case "answer":
		return election.BullyAnswer{Election: Election, Round: round}
	}
	d.Fatalf(t, "unknown message %q", what)
	return nil
}

func (n *Network) state() {
	for _, a := range n.agents {
		switch {
		case a.Dead:
			continue
		case a.Leads != nil:
			n.logf("%s leads in term %d\n", a.Rank.Peer, a.Leads.Term)
		case a.Nominee:
			n.logf("%s is nominee\n", a.Rank.Peer)
		case a.Selector.Active():
			n.logf("%s is active until %s\n", a.Rank.Peer, a.wake.Sub(0))
		}
	}
	n.logf("sent: %s\n", strings.TrimPrefix(fmt.Sprint(n.Sent), "map"))
}

func eachName(d *datadriven.TestData, do func(election.PeerID)) {
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			do(election.PeerID(arg.Key))
		}
	}
}

func name(t *testing.T, d *datadriven.TestData, key string) election.PeerID {
	var s string
	d.ScanArgs(t, key, &s)
	return election.PeerID(s)
}

func duration(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	s := string(name(t, d, key))
	v, err := time.ParseDuration(s)
	if err != nil {
		d.Fatalf(t, "parse %s: %v", key, err)
	}
	return v
}
