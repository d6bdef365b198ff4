package api

import (
	"time"
)

// Keys answers GET and POST /v1/keys: the cluster keys of this agent, the key in use first.
type Keys struct {
	Keys    []Key  `json:"keys"`
	Message string `json:"message,omitempty"` // after a rotation: which agents have the new key, and which do not
}

// Key is a cluster key, named by its fingerprint: the key itself is never shown.
type Key struct {
	Fingerprint string `json:"fingerprint"` // 16 hexadecimal digits, the same on all agents
	InUse       bool   `json:"in_use"`      // this agent encrypts with this key; it accepts all keys in the list
}

// KeysRequest is the body of POST /v1/keys. Exactly one of the first four fields is set.
type KeysRequest struct {
	Add    string `json:"add,omitempty"`    // a key, base64 as in the key file
	Use    string `json:"use,omitempty"`    // a fingerprint
	Remove string `json:"remove,omitempty"` // a fingerprint
	Rotate bool   `json:"rotate,omitempty"` // give a new key to the voters, use it, and drop all others
	// With, Without and Only are options of Rotate, and contain names or IDs. Agents in With get the key
	// besides the voters. Agents in Without don't get it. If Only is set, only the agents in it and the
	// agent that was asked get the key, whether they vote or not.
	With    []string `json:"with,omitempty"`
	Without []string `json:"without,omitempty"`
	Only    []string `json:"only,omitempty"`
	// Force, with Use and Rotate, goes on although some agents will be cut off.
	Force bool `json:"force,omitempty"`
}

// CodeInUse refuses to remove the key that is in use.
const CodeInUse = "in_use"

// CodeKeyMissing refuses to use a key, or to rotate: the agents that the message names would be cut off.
const CodeKeyMissing = "key_missing"

// LogLevelRequest is the body of POST /v1/log-level.
type LogLevelRequest struct {
	Level string `json:"level"`  // debug, info, warn or error
	ForMS int64  `json:"for_ms"` // 1 second to 24 hours
}

// LogLevel answers POST /v1/log-level. A restart of the agent ends the change earlier.
type LogLevel struct {
	Level string    `json:"level"`
	Until time.Time `json:"until"`
	Then  string    `json:"then"` // the configured level, to which the agent returns after that time
}

// Dial shows whether one agent reaches a port of another.
type Dial struct {
	Port  string `json:"port"` // gossip-tcp, gossip-udp or peer-tcp
	Addr  string `json:"addr"`
	Error string `json:"error"` // why the port is not reached; empty: it is reached
}

// The ports of a Dial. UDP can't be dialled, so the agent sends pings to the UDP port. An answer shows that
// the port is reached.
const (
	DialGossipTCP = "gossip-tcp"
	DialGossipUDP = "gossip-udp"
	DialPeerTCP   = "peer-tcp"
)
