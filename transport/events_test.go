package transport

import "sync"

var pumps sync.Map // of transports: the channels that Events returned

// Events returns what happens, as a channel that is closed once the transport is.
func (t *Transport) Events() <-chan Event {
	events, known := pumps.LoadOrStore(t, make(chan Event))
	if !known {
		go t.pump(events.(chan Event))
	}
	return events.(chan Event)
}

func (t *Transport) pump(events chan<- Event) {
	defer close(events)
	for {
		e, ok := t.Next()
		if !ok {
			select {
			case <-t.Ready():
				continue
			case <-t.ctx.Done():
				return
			}
		}
		select {
		case events <- e:
		case <-t.ctx.Done():
			return
		}
	}
}
