package keeper

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/doyen-election/doyen/agent/proof"
	"github.com/doyen-election/doyen/agent/record"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/alarm"
	"github.com/doyen-election/doyen/internal/leasepage"
	"github.com/doyen-election/doyen/internal/obituary"
)

// repeats is how often the obituary is sent to each voter, since a datagram may be lost.
// repeatEvery is the time between two sends.
const (
	repeats     = 4
	repeatEvery = 50 * time.Millisecond
)

// bury ends the lineage (K5, K6). It waits until nobody acts under the lineage's terms any
// more, destroys the record, and only then reveals the secret.
func bury(known Known) error {
	r, past, err := record.Inherit(record.Config{Path: known.Record, Peer: election.PeerID(known.Peer)})
	if err != nil {
		return err
	}
	if r == nil || past == nil {
		return errors.New("there is no record")
	}
	defer r.Close()
	if err := settle(known.Pages, past); err != nil {
		return err
	}
	n := obituary.Notice{Holder: election.Holder{Peer: election.PeerID(known.Peer), Lineage: past.ID}, Secret: r.Secret()}
	if err := r.Destroy(); err != nil {
		return fmt.Errorf("destroy record: %w", err)
	}
	return reveal(n, past.Voters)
}

// settle returns once nobody acts under a term of the lineage. It ends lease pages at once. A
// program acts no more once the kernel proves that it has ended, or else from its deadline on.
// What a hook has set up ends at its deadline.
func settle(pages string, past *record.Past) error {
	until, doubt := int64(0), election.Name("")
	for _, row := range past.Rows {
		if row.Term == 0 || quiet(past.Actors[row.Election], row.Term) {
			continue
		}
		if at := int64(row.Until); at > until {
			until, doubt = at, row.Election
		}
	}
	if until == never {
		return fmt.Errorf("what acts in %s has no deadline", doubt)
	}
	if err := wipe(pages); err != nil {
		return err
	}
	if until <= alarm.Now() {
		return nil
	}
	a, err := alarm.New()
	if err != nil {
		return err
	}
	defer a.Close()
	for a.Set(until + 1); alarm.Now() <= until; {
		<-a.C
	}
	return nil
}

// quiet reports whether nobody acts under the term, so that no deadline must be waited for.
func quiet(a record.Actors, term election.Term) bool {
	if a.Hook.Term != 0 {
		return false
	}
	p := a.Program
	if p.Campaign == "" || p.Stopped >= p.Told { // the host itself led, or the program stopped
		return true
	}
	process, err := proof.Recorded(p)
	if err != nil {
		return false
	}
	defer process.Close()
	return process.Alone()
}

// wipe ends the lease pages of a directory.
func wipe(dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			err = errors.Join(err, leasepage.Wipe(filepath.Join(dir, e.Name())))
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// reveal sends the obituary to all voters.
func reveal(n obituary.Notice, voters []record.Voter) error {
	datagram, err := obituary.Encode(n)
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return fmt.Errorf("publish obituary: %w", err)
	}
	defer conn.Close()
	sent := 0
	for i := range repeats {
		if i > 0 {
			<-time.After(repeatEvery)
		}
		for _, v := range voters {
			if v.Peer == n.Holder.Peer || !v.Gossip.IsValid() {
				continue
			}
			if _, err := conn.WriteToUDPAddrPort(datagram, netip.AddrPortFrom(v.Gossip.Addr().Unmap(), v.Gossip.Port())); err == nil {
				sent++
			}
		}
	}
	if sent == 0 {
		return errors.New("publish obituary: no voter could be reached")
	}
	say("an obituary was sent to the voters: another host may lead at once")
	return nil
}
