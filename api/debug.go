package api

import "time"

// LogLevelRequest is the body of POST /v1/log-level.
type LogLevelRequest struct {
	Level string `json:"level"`  // debug, info, warn or error
	ForMS int64  `json:"for_ms"` // 1 second to 24 hours
}

// LogLevel answers POST /v1/log-level. A restart of the agent ends it earlier.
type LogLevel struct {
	Level string    `json:"level"`
	Until time.Time `json:"until"`
	Then  string    `json:"then"` // the level of the configuration, to which the agent then returns
}

// Dial is whether one agent reaches a port of another.
type Dial struct {
	Port  string `json:"port"` // gossip-tcp, gossip-udp or peer-tcp
	Addr  string `json:"addr"`
	Error string `json:"error"` // empty: it does
}

// The ports of a Dial. UDP can't be dialled: what counts is whether the agent's pings were answered.
const (
	DialGossipTCP = "gossip-tcp"
	DialGossipUDP = "gossip-udp"
	DialPeerTCP   = "peer-tcp"
)
