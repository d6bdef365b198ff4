//go:build !linux

package attack

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

var errLinux = errors.New("this attack needs Linux")

func listenAs(context.Context, netip.Addr) (net.PacketConn, error) { return nil, errLinux }

func captureGossip(context.Context, uint16) ([][]byte, error) { return nil, errLinux }
