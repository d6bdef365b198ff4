// Package offer puts what may be lost into a channel: it guarantees that no sender waits for a receiver.
package offer

// To sends v if the channel has room. If c has capacity 1 and v is a signal, at most one signal waits.
func To[T any](c chan<- T, v T) {
	select {
	case c <- v:
	default:
	}
}
