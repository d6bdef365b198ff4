// Package offer puts what may be lost into a channel: it guarantees that no sender waits for a receiver.
package offer

// To sends v if the channel has room. A signal is added to a channel of capacity 1 unless one waits.
func To[T any](c chan<- T, v T) {
	select {
	case c <- v:
	default:
	}
}
