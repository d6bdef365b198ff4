//go:build !linux

package netns

import (
	"errors"
	"net/netip"
)

var errLinux = errors.New("make network: only Linux has network namespaces")

// Network can't be made on this system.
type Network struct{}

// Host is a host of a network.
type Host struct{ Addr netip.Addr }

// New fails on this system.
func New(int, uint64) (*Network, error) { return nil, errLinux }

// Check returns why no network can be made here.
func Check() error { return errLinux }

// Rerun never runs anything on this system.
func Rerun() (code int, ran bool, err error) { return 0, false, errLinux }

func (*Network) Host(int) *Host                 { return &Host{} }
func (*Network) Close() error                   { return nil }
func (*Network) SetLink(_, _ int, _ Link) error { return errLinux }
func (*Network) Link(_, _ int) Link             { return Link{} }
func (*Host) Enter() error                      { return errLinux }
func (*Host) SetCarrier(bool) error             { return errLinux }
