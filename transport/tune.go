package transport

import (
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// The kernel finds the connections that lead nowhere: those with something to
// send by silence, idle ones by its own probes.
const (
	// silenceMin and silenceMax bound how long a peer's kernel may acknowledge
	// nothing; between them it is a lease.
	silenceMin = time.Second
	silenceMax = 10 * time.Second
	probeIdle  = 5 * time.Second // a connection that is so long idle is probed
	probeEvery = time.Second
	probeCount = 3
)

// silence is how long written data may stay unacknowledged. Without, the kernel
// repeats it for minutes, ever more rarely: after a long cut, a connection that
// nobody closed would stay dark for as long again as the cut lasted.
func silence(lease time.Duration) time.Duration {
	return min(max(lease, silenceMin), silenceMax)
}

// tune sets the connection's timeouts, as far as the system has them.
func tune(c network.ConnMultiaddrs, unacked time.Duration) error {
	tcp, ok := c.(interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
		rawConn
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
