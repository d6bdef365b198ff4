package record

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"sync/atomic"

	"github.com/doyen-election/doyen/election"
)

// header holds what does not change in a lineage.
type header struct {
	lineage  election.LineageID
	host     host
	device   uint64 // of the file
	inode    uint64
	joinedAt int64
	secret   [32]byte
	peer     election.PeerID
}

func newHeader(c Config, h host, f *os.File) (header, error) {
	info, err := f.Stat()
	if err != nil {
		return header{}, err
	}
	stat, _ := statOf(info)
	head := header{lineage: election.LineageID(c.Run), host: h, device: uint64(stat.Dev), inode: stat.Ino, joinedAt: c.Born, peer: c.Peer}
	_, _ = rand.Read(head.secret[:]) // never fails
	return head, nil
}

// put puts the header into its words, the check last.
func (h *header) put(m memory) {
	set := func(at int, v uint64) { m[at] = v }
	set(0, word(magic))
	set(wordFormat, Format|rows<<32)
	set(wordLineage, uint64(h.lineage))
	set(wordBoot, word(string(h.host.boot[:8])))
	set(wordBoot+1, word(string(h.host.boot[8:])))
	set(wordTimeNS, h.host.timeNS)
	set(wordDevice, h.device)
	set(wordInode, h.inode)
	set(wordJoined, uint64(h.joinedAt))
	for i := range 4 {
		set(wordSecret+i, word(string(h.secret[8*i:])))
	}
	var peer [textWords]uint64
	putText(peer[:], string(h.peer))
	for i, w := range peer {
		set(wordPeer+i, w)
	}
	set(wordCheck, headerSum(m))
}

func headerSum(m memory) uint64 {
	sum := uint64(sumBasis)
	for _, w := range m[:wordCheck] {
		sum = mix(sum, w)
	}
	return sum
}

// getHeader reads the header of a record that was not destroyed.
func getHeader(m memory) (h header, err error) {
	get := func(at int) uint64 { return m[at] }
	switch {
	case get(0) != word(magic):
		return h, errNoRecord
	case uint32(get(wordFormat)) != Format:
		return h, formatError(get(wordFormat))
	case get(wordFormat)>>32 != rows, get(wordCheck) != headerSum(m):
		return h, errDamaged
	case atomic.LoadUint64(&m[wordState]) != word(alive):
		return h, errDestroyed
	}
	h = header{
		lineage: election.LineageID(get(wordLineage)), host: host{timeNS: get(wordTimeNS)},
		device: get(wordDevice), inode: get(wordInode), joinedAt: int64(get(wordJoined)),
	}
	binary.LittleEndian.PutUint64(h.host.boot[:8], get(wordBoot))
	binary.LittleEndian.PutUint64(h.host.boot[8:], get(wordBoot+1))
	for i := range 4 {
		binary.LittleEndian.PutUint64(h.secret[8*i:], get(wordSecret+i))
	}
	var peer [textWords]uint64
	for i := range peer {
		peer[i] = get(wordPeer + i)
	}
	name, ok := text(peer[:])
	if h.peer = election.PeerID(name); !ok || name == "" || h.lineage == 0 {
		return h, errDamaged
	}
	return h, nil
}

// judge returns why a life of that agent, on that host, can't go on from the record in the
// file (K3).
func (h *header) judge(peer election.PeerID, on host, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stat, _ := statOf(info)
	switch {
	case h.host.boot != on.boot:
		return errOtherBoot
	case h.host.timeNS != on.timeNS:
		return errOtherTime
	case h.peer != peer:
		return otherPeerError(h.peer)
	case h.device != uint64(stat.Dev), h.inode != stat.Ino:
		return errOtherFile
	}
	return nil
}
