package leasepage

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
)

// The layout, version 1. Places and lengths are in bytes, and numbers have the host's own byte order:
//
//	  0   8  magic: "doyenlp" and a newline
//	  8   4  version of the layout: 1
//	 12   4  length of the election's name
//	 16  64  the name, then zeros
//	 80  16  the host's boot, as the kernel names it
//	 96   8  the agent's lineage ID
//	104  24  zeros
//	128   8  sequence: how many times the page was written, never 0
//	136  24  zeros
//	160  24  the value if the sequence is even: term, deadline, check
//	192  24  the value if the sequence is odd, the same
//
// All other bytes up to Size are zeros. A deadline is an instant of CLOCK_BOOTTIME in nanoseconds; 0
// means that the agent does not lead. The check is 64-bit FNV-1a over the first 128 bytes, sequence, term
// and deadline, in words of 8 bytes.
const (
	// Size is a page's length in bytes.
	Size = 4096
	// Version is the version of the layout.
	Version = 1

	magic   = "doyenlp\n"
	maxName = 63

	headerSize = 128
	atVersion  = 8
	atLength   = 12
	atName     = 16
	atHost     = 80
	atAgent    = 96

	// The places of single values, counted in words of 8 bytes.
	wordSequence = 128 / 8
	wordEven     = 160 / 8
	wordOdd      = 192 / 8
)

// Dir returns where the agent that listens at the socket keeps its pages: for /run/doyen/doyen.sock it is
// /run/doyen/doyen.leases. So two agents whose sockets are in one directory keep their pages apart.
func Dir(socket string) string { return strings.TrimSuffix(socket, ".sock") + ".leases" }

// Path returns where the agent that listens at the socket keeps the page of the election.
func Path(socket, election string) string { return filepath.Join(Dir(socket), election) }

// words is a page in memory.
type words = [Size / 8]uint64

// HostBoot names one boot of the host: CLOCK_BOOTTIME starts again at each boot.
type HostBoot [16]byte

// header is the part of a page that never changes.
type header struct {
	election string
	host     HostBoot
	agent    uint64
}

func (h header) encode() [headerSize]byte {
	var b [headerSize]byte
	copy(b[:], magic)
	binary.NativeEndian.PutUint32(b[atVersion:], Version)
	binary.NativeEndian.PutUint32(b[atLength:], uint32(len(h.election)))
	copy(b[atName:atName+maxName], h.election)
	copy(b[atHost:], h.host[:])
	binary.NativeEndian.PutUint64(b[atAgent:], h.agent)
	return b
}

// value is the part of a page that changes.
type value struct {
	term     uint64
	deadline int64
}

const (
	fnvBasis = 0xcbf29ce484222325
	fnvPrime = 0x100000001b3
)

func mix(sum, word uint64) uint64 { return (sum ^ word) * fnvPrime }

// headerSum is the header's part of the check.
func headerSum(b [headerSize]byte) uint64 {
	sum := uint64(fnvBasis)
	for i := 0; i < headerSize; i += 8 {
		sum = mix(sum, binary.NativeEndian.Uint64(b[i:]))
	}
	return sum
}

// seal computes the check. It ties a value to its page and its sequence, so that neither bytes of another
// page nor a mixture of two values is accepted.
func seal(header, sequence uint64, v value) uint64 {
	return mix(mix(mix(header, sequence), v.term), uint64(v.deadline))
}

// place returns the index of the first word of the value at a sequence.
func place(sequence uint64) int {
	if sequence%2 == 0 {
		return wordEven
	}
	return wordOdd
}

// judge returns an error unless b is the header of this election's page in this boot of the host.
func judge(b [headerSize]byte, election string, host HostBoot) error {
	want := header{election: election, host: host, agent: binary.NativeEndian.Uint64(b[atAgent:])}
	version := binary.NativeEndian.Uint32(b[atVersion:])
	switch {
	case len(election) > maxName:
		return errOther
	case string(b[:len(magic)]) != magic:
		return errNoPage
	case version != Version:
		return fmt.Errorf("its layout has version %d, this program reads version %d", version, Version)
	case HostBoot(b[atHost:atAgent]) != host:
		return errOtherBoot
	case b != want.encode():
		return errOther
	}
	return nil
}
