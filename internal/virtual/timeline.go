package virtual

import (
	"cmp"
	"slices"
)

// Never is a time that is never reached.
const Never = 1<<63 - 1

// Timeline has everything that is going to happen: the caller's events, and the times at which agents want to
// be woken. T is the type of a time, in nanoseconds. The zero value is an empty timeline at time 0.
type Timeline[T ~int64, E any] struct {
	Now T
	// Wakes is when each agent, by its index, wants to be woken; Never: no wake-up.
	Wakes []T

	heap []entry[T, E] // a binary heap; container/heap would box each event
	last uint64        // the number of the newest entry
}

type entry[T ~int64, E any] struct {
	at     T
	number uint64 // among entries with equal times, the lowest number comes first
	event  E
}

func (e *entry[T, E]) before(f *entry[T, E]) bool {
	return e.at < f.at || e.at == f.at && e.number < f.number
}

// Push makes the event happen at the given time.
func (l *Timeline[T, E]) Push(at T, event E) {
	l.last++
	l.heap = append(l.heap, entry[T, E]{at: at, number: l.last, event: event})
	for i := len(l.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !l.heap[i].before(&l.heap[up]) {
			return
		}
		l.heap[i], l.heap[up] = l.heap[up], l.heap[i]
		i = up
	}
}

// Next moves the time to the next thing that happens, and returns it: an event (agent is -1), or the index of
// an agent to wake, whose wake-up it clears. At equal times, events come before wake-ups. If nothing happens up
// to and including end, Next moves the time to end and returns false.
func (l *Timeline[T, E]) Next(end T) (event E, agent int, ok bool) {
	agent, at := -1, T(Never)
	for i, wake := range l.Wakes {
		if wake < at {
			agent, at = i, wake
		}
	}
	if len(l.heap) > 0 && l.heap[0].at <= at {
		agent, at = -1, l.heap[0].at
	}
	if at > end || at == Never {
		l.Now = max(l.Now, end)
		return event, -1, false
	}
	l.Now = max(l.Now, at)
	if agent >= 0 {
		l.Wakes[agent] = Never
		return event, agent, true
	}
	return l.pop(), -1, true
}

func (l *Timeline[T, E]) pop() E {
	first := l.heap[0].event
	n := len(l.heap) - 1
	l.heap[0] = l.heap[n]
	l.heap[n] = entry[T, E]{}
	l.heap = l.heap[:n]
	for i := 0; ; {
		least := i
		for _, j := range [2]int{2*i + 1, 2*i + 2} {
			if j < n && l.heap[j].before(&l.heap[least]) {
				least = j
			}
		}
		if least == i {
			return first
		}
		l.heap[i], l.heap[least] = l.heap[least], l.heap[i]
		i = least
	}
}

// Reschedule moves each event to the time that `when` returns for it. Events whose times become equal keep
// their order.
func (l *Timeline[T, E]) Reschedule(when func(at T, event E) T) {
	old := l.heap
	l.heap = nil
	slices.SortFunc(old, func(e, f entry[T, E]) int { return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.number, f.number)) })
	for _, e := range old {
		l.Push(when(e.at, e.event), e.event)
	}
}
