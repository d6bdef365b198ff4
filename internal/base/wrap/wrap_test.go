package wrap

import (
	"io"
	"testing"
)

func TestAnErrorKeepsItsCauseAndNilStaysNil(t *testing.T) {
	if err := Error(nil, "read %s", "it"); err != nil {
		t.Errorf("nil became %v", err)
	}
	err := Error(io.EOF, "read %s", "it")
	if cause, ok := err.(interface{ Unwrap() error }); !ok || cause.Unwrap() != io.EOF || err.Error() != "read it: EOF" {
		t.Errorf("got %q", err)
	}
}
