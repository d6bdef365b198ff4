package record

import (
	"encoding/binary"
	"math/bits"

	"github.com/doyen-election/doyen/election"
)

// Format is the layout's version. A life that knows another format begins a new lineage.
const Format = 1

// Places and sizes in words of 8 bytes; doc.go has them in bytes.
const (
	magic     = "doyenrec"
	alive     = "recorded"
	textWords = 8 // a text of up to 63 bytes
	maxText   = textWords*8 - 1

	wordFormat  = 1
	wordLineage = 2
	wordBoot    = 3
	wordTimeNS  = 5
	wordDevice  = 6
	wordInode   = 7
	wordJoined  = 8
	wordSecret  = 9
	wordPeer    = 13
	wordCheck   = 21
	wordState   = 22

	wordLife  = 23
	lifeRoom  = 5
	wordTerms = 36
	termsRoom = 2

	wordVoters = 48
	voterWords = textWords + 2*3
	votersRoom = 1 + MaxVoters*voterWords

	wordRows      = 1024
	rowWords      = 76
	rows          = election.MaxElections
	rowAuthority  = textWords
	authorityRoom = 6 + textWords
	rowActors     = rowAuthority + 3 + 2*authorityRoom
	campaignWords = 4
	actorsRoom    = campaignWords + 7 + MaxSockets

	words = wordRows + rows*rowWords
	size  = words * 8
)

const (
	sumBasis = 0xcbf29ce484222325
	sumPrime = 0x100000001b3
)

// mix adds a word to a check. Each step is one to one, so one damaged word is always found.
func mix(sum, word uint64) uint64 { return bits.RotateLeft64(sum^word, 29) * sumPrime }

func mixAll(sum uint64, words []uint64) uint64 {
	for _, w := range words {
		sum = mix(sum, w)
	}
	return sum
}

func word(b string) uint64 { return binary.LittleEndian.Uint64([]byte(b)) }

// putText puts a text into words, with the length in front. A text that does not fit is
// dropped as a whole: the caller has checked the length, or can do without the text.
func putText(to []uint64, s string) {
	clear(to)
	if len(s) > len(to)*8-1 {
		return
	}
	to[0] = uint64(len(s))
	for i := range len(s) {
		to[(i+1)/8] |= uint64(s[i]) << ((i + 1) % 8 * 8)
	}
}

func text(from []uint64) (string, bool) {
	n := int(from[0] & 0xff)
	if n > len(from)*8-1 {
		return "", false
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(from[(i+1)/8] >> ((i + 1) % 8 * 8))
	}
	return string(b), true
}
