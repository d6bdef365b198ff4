package membership

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/door"
)

// These tests wait, and do not run in parallel: they look at all goroutines of the process. The go command
// runs a package's files in the order of their names, so this file's tests run last.

func TestCloseLeavesNothingBehind(t *testing.T) {
	a := start(t, testConfig(1))
	b := startJoined(t, 2, a)
	c := startJoined(t, 3, a, b)
	a.sees("agent-1", "agent-2", "agent-3")
	if err := c.Close(); err != nil { // so that a and b have somebody to look for
		t.Fatal(err)
	}
	a.departs("agent-3", Dead)
	for _, x := range []*agent{a, b} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if err := x.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
		if err := x.Leave(context.Background()); err == nil {
			t.Error("an agent that is closed left")
		}
		if err := x.Update(func(*Member) {}); err == nil {
			t.Error("an agent that is closed was updated")
		}
	}
	noneLeft(t)
}

func TestGarbageOnThePortHarmsNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(1)
	cfg.Key = nil // so that more than decryption is reached
	a := start(t, cfg)
	rng := rand.New(rand.NewPCG(2, 2))
	udp, err := net.Dial("udp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	label := append([]byte{244, 4}, "test"...)
	for i := range 2000 {
		p := make([]byte, 1+rng.IntN(600))
		for j := range p {
			p[j] = byte(rng.Uint32())
		}
		if i%2 == 0 {
			p[0] = byte(i / 2 % 16) // a message type
			p = append(bytes.Clone(label), p...)
		}
		if _, err := udp.Write(p); err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			flood(t, a, p)
		}
	}
	// Twice as many idle streams as are served.
	for range 2 * door.Unproven {
		c, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	cfg = testConfig(2)
	cfg.Key, cfg.Join = nil, addrsOf(a)
	b := start(t, cfg)
	for _, x := range []*agent{a, b} {
		x.sees("agent-1", "agent-2")
	}
	for _, x := range []*agent{a, b} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	noneLeft(t)
}

func flood(t *testing.T, a *agent, p []byte) {
	c, err := net.Dial("tcp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write(p)
	if err := c.(*net.TCPConn).CloseWrite(); err == nil {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, _ = io.Copy(io.Discard, c)
	}
	_ = c.Close()
}
