package offer

import "testing"

func TestWhatHasNoRoomIsLost(t *testing.T) {
	c := make(chan int, 1)
	To(c, 1)
	To(c, 2)
	if got := <-c; got != 1 || len(c) != 0 {
		t.Errorf("got %d, and %d wait", got, len(c))
	}
}
