//go:build !linux

package runner

import "errors"

// notices are not available, since only Linux shows which process wrote to a socket.
type notices struct{ name string }

func newNotices() (*notices, error)                      { return nil, errors.New("only Linux has a NOTIFY_SOCKET") }
func (*notices) listen(<-chan struct{}, chan<- *notices) {}
func (*notices) next() ([]byte, sender, bool)            { return nil, sender{}, false }
func (*notices) close()                                  {}
