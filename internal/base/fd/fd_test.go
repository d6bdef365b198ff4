package fd

import (
	"io"
	"os"
	"testing"
)

func TestTheErrorIsOfTheFunctionOrOfTheFile(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := Use(f, func(fd int) error { return map[bool]error{true: io.EOF}[fd == int(f.Fd())] }); err != io.EOF {
		t.Errorf("got %v, want the function's own error about the file's descriptor", err)
	}
	f.Close()
	if err := Use(f, func(int) error { t.Error("called with a closed file"); return nil }); err == nil {
		t.Error("no error for a closed file")
	}
}
