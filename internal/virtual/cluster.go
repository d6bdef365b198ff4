package virtual

import (
	"time"

	"github.com/doyen-election/doyen/election"
)

// Cluster is a number of agents that share one exact clock. Its network loses a message only if Cut says so or
// the receiver is down. Its disks keep every write. Set its functions before you add the first agent.
type Cluster struct {
	Timeline[election.Instant, Event]
	Agents []*Agent

	// Cut reports whether messages from one agent to the other get lost at present. It is called when a message
	// is sent and when it should arrive.
	Cut func(from, to *Agent) bool
	// Delay is how long a message takes, but messages between two agents keep their order. Write is how long a
	// write takes.
	Delay func(from, to *Agent) time.Duration
	Write func(*Agent) time.Duration
	// Watch is called with each action of an agent (see Actions), before the cluster
	// carries it out.
	Watch func(*Agent, any)

	byPeer map[election.PeerID]*Agent
}

// Agent is one agent of a cluster.
type Agent struct {
	election.Holder
	Step func(election.Instant, election.Input) election.Output // the Step of its elector
	Up   bool                                                   // if false, nothing reaches the agent
	Disk election.State                                         // the disk's content after its last write
	Past election.Past                                          // the record that its lives have left
	// Stubborn agents give no receipt when they are asked to stop leading.
	Stubborn bool
	Index    int // the agent's index in Cluster.Agents

	run     int                         // how many processes the agent has had
	arrival map[*Agent]election.Instant // when the newest message to each agent arrives, since links keep the order
}

// Event is an input on its way to one process of an agent.
type Event struct {
	from, to *Agent // from is nil if the input is not a message
	run      int
	input    election.Input
}

// Add adds an agent. The agent is woken as soon as it is up.
func (c *Cluster) Add(a *Agent) {
	a.Index, a.arrival = len(c.Agents), map[*Agent]election.Instant{}
	c.Agents = append(c.Agents, a)
	c.Wakes = append(c.Wakes, c.Now)
	if c.byPeer == nil {
		c.byPeer = map[election.PeerID]*Agent{}
	}
	c.byPeer[a.Peer] = a
}

// Start starts a new process of the agent: the next life of the same lineage, or the first life of another one.
func (c *Cluster) Start(a *Agent, lineage election.LineageID) {
	if lineage != a.Lineage {
		a.Past = election.Past{Lineage: election.Lineage{ID: lineage}}
	}
	a.Lineage, a.Up = lineage, true
	a.run++
	a.Past.Life++
	c.Wakes[a.Index] = c.Now
}

// Find returns the agent with that peer ID, nil if there is none.
func (c *Cluster) Find(p election.PeerID) *Agent { return c.byPeer[p] }

// Input gives an input to the agent's present process, after some time.
func (c *Cluster) Input(a *Agent, after time.Duration, in election.Input) {
	c.Push(c.Now.Add(after), Event{to: a, run: a.run, input: in})
}

// Happen makes the next event happen. If no event is due up to end, it moves the time to end and returns false.
func (c *Cluster) Happen(end election.Instant) bool {
	e, agent, ok := c.Next(end)
	switch {
	case !ok:
		return false
	case agent >= 0:
		c.step(c.Agents[agent], election.Tick{})
	case e.run == e.to.run && (e.from == nil || !c.Cut(e.from, e.to)):
		c.step(e.to, e.input)
	}
	return true
}

func (c *Cluster) step(a *Agent, in election.Input) {
	if !a.Up {
		return
	}
	out := a.Step(c.Now, in)
	for action := range Actions(&out) {
		c.Watch(a, action)
		switch x := action.(type) {
		case *election.LifeRecord:
			a.Past.LifeRecord = Recorded(a.Past.LifeRecord, x)
		case election.Withdrawal:
			if !a.Stubborn {
				c.Input(a, 0, election.Stopped{Election: x.Election, Term: x.Term})
			}
		case *election.Persist:
			a.Disk = a.Disk.After(x)
			c.Input(a, c.Write(a), election.Persisted{Write: x.Write})
		case election.Envelope:
			c.send(a, x)
		case election.Instant:
			c.Wakes[a.Index] = x
		}
	}
}

func (c *Cluster) send(from *Agent, m election.Envelope) {
	to := c.Find(m.To)
	if to == nil || !to.Up || c.Cut(from, to) {
		return
	}
	at := max(c.Now.Add(c.Delay(from, to)), from.arrival[to])
	from.arrival[to] = at
	c.Push(at, Event{from: from, to: to, run: to.run, input: election.Received{From: from.Peer, Message: m.Message}})
}
