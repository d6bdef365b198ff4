package obituary_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/obituary"
)

var notice = obituary.Notice{
	Holder: election.Holder{Peer: "12D3KooWExample", Lineage: 7},
	Secret: [obituary.SecretSize]byte{1, 2, 3, 31: 32},
}

func TestANoticeComesBackFromItsDatagram(t *testing.T) {
	sent, err := obituary.Encode(notice)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := obituary.Decode(sent); err != nil || got != notice {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func TestWhatIsNotANoticeIsRefused(t *testing.T) {
	sent, err := obituary.Encode(notice)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(obituary.Magic) + 8 + obituary.SecretSize {
		if got, err := obituary.Decode(sent[:n]); err == nil {
			t.Errorf("its first %d bytes: %+v", n, got)
		}
	}
	if _, err := obituary.Decode(append(bytes.Clone(sent), bytes.Repeat([]byte("x"), obituary.MaxSize)...)); err == nil {
		t.Error("one that is too long was accepted")
	}
	for _, bad := range []obituary.Notice{{}, {Holder: election.Holder{Peer: "p"}}, {Holder: election.Holder{Lineage: 1}},
		{Holder: election.Holder{Peer: election.PeerID(strings.Repeat("p", 200)), Lineage: 1}}} {
		if _, err := obituary.Encode(bad); err == nil {
			t.Errorf("%+v was encoded", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	sent, _ := obituary.Encode(notice)
	f.Add(sent)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := obituary.Decode(b)
		if err != nil {
			return
		}
		if again, err := obituary.Encode(n); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x came back as %x, %v", b, again, err)
		}
	})
}
