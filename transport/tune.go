package transport

import (
	"net"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// The kernel ends a connection whose other end does not answer. It sees that sent data is not acknowledged,
// or that the probes on an idle connection are not.
const (
	// silenceMin and silenceMax bound how long a peer's kernel may acknowledge nothing. Between these
	// bounds, the limit is one lease.
	silenceMin = time.Second
	silenceMax = 10 * time.Second
	probeIdle  = 5 * time.Second // a connection that has been idle this long is probed
	probeEvery = time.Second
	probeCount = 3
)

// silence is how long sent data may stay unacknowledged. Without a limit, the kernel repeats the data for
// minutes, more and more rarely. Then, after a long cut, a connection that nobody closed would stay
// silent for as long again as the cut lasted.
func silence(lease time.Duration) time.Duration { return min(max(lease, silenceMin), silenceMax) }

// tune sets the connection's timeouts, as far as the system supports them.
func tune(c network.ConnMultiaddrs, unacked time.Duration) error {
	tcp, ok := c.(interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
		syscall.Conn
	})
	if !ok {
		return nil
	}
	err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeEvery, Count: probeCount})
	if err != nil {
		return err
	}
	return setUserTimeout(tcp, unacked)
}
