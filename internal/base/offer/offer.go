// Package offer sends to a channel without waiting for a receiver: a value may be lost.
package offer

// To sends v if the channel has room. With capacity 1, at most one signal waits.
func To[T any](c chan<- T, v T) {
	select {
	case c <- v:
	default:
	}
}
