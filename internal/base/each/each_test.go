package each

import (
	"slices"
	"strconv"
	"testing"
)

func TestAListKeepsItsOrderAndAnEmptyOneIsNil(t *testing.T) {
	if got := Of([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("got %v", got)
	}
	if got := Of([]int{}, strconv.Itoa); got != nil {
		t.Errorf("got %v for an empty list", got)
	}
}

func TestTheFirstOfSeveralIsFound(t *testing.T) {
	even := func(n int) bool { return n%2 == 0 }
	if n, ok := First([]int{1, 4, 6}, even); n != 4 || !ok {
		t.Errorf("got %d, %t", n, ok)
	}
	if n, ok := First([]int{1, 3}, even); n != 0 || ok {
		t.Errorf("got %d, %t where none is even", n, ok)
	}
}
