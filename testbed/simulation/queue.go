package simulation

import "github.com/doyen-election/doyen/election"

// event is something that will happen at a true time: a message that arrives,
// or anything else, in run.
type event struct {
	at    int64
	seq   uint64 // first come, first served
	run   func()
	to    *agent
	from  *agent
	as    election.PeerID // who the sender was then: it may lose its disk before the message arrives
	epoch int             // of its clock then
	life  uint32          // of the receiver, when the message was sent
	conn  uint32          // generation of the connection it was sent on
	msg   election.Message
	arrow int // of the history
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.seq < f.seq
}

// queue is a binary heap of events by time. It is written out because
// container/heap boxes every element, and this is the innermost loop.
type queue struct {
	events []event
	seq    uint64
}

func (q *queue) next() int64 {
	if len(q.events) == 0 {
		return never
	}
	return q.events[0].at
}

func (q *queue) push(e event) {
	q.seq++
	e.seq = q.seq
	q.events = append(q.events, e)
	for i := len(q.events) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.events[i].before(&q.events[up]) {
			return
		}
		q.events[i], q.events[up] = q.events[up], q.events[i]
		i = up
	}
}

func (q *queue) pop() event {
	first := q.events[0]
	n := len(q.events) - 1
	q.events[0] = q.events[n]
	q.events[n] = event{}
	q.events = q.events[:n]
	for i := 0; ; {
		least := i
		for _, j := range [2]int{2*i + 1, 2*i + 2} {
			if j < n && q.events[j].before(&q.events[least]) {
				least = j
			}
		}
		if least == i {
			return first
		}
		q.events[i], q.events[least] = q.events[least], q.events[i]
		i = least
	}
}

// hasten lets every message under way arrive by the true time t.
func (q *queue) hasten(t int64) {
	events := q.events
	q.events = nil
	for _, e := range events {
		if e.run == nil {
			e.at = min(e.at, t)
		}
		q.push(e) // in the order of the heap: messages keep none
	}
}
