package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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
func bury(known Known, logger *slog.Logger) error {
	if known.Record == "" { // nothing is known of what acts, and nothing can be revealed
		endHooks(known, nil, logger).close()
		return wipe(known.Pages)
	}
	r, past, err := record.Inherit(record.Config{Path: known.Record, Peer: election.PeerID(known.Peer)})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the life has ended the lineage itself
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if err := wipe(known.Pages); err != nil {
		return err
	}
	for name, acts := range past.Actors { // a life that finds the record after all runs the hook again
		if acts.Hook.Finished = false; acts.Hook.Term != 0 {
			if err := r.WriteActors(name, acts); err != nil {
				return err
			}
		}
	}
	hooks := endHooks(known, past, logger)
	defer hooks.close()
	if err := settle(past, hooks); err != nil {
		return err
	}
	n := obituary.Notice{Holder: election.Holder{Peer: election.PeerID(known.Peer), Lineage: past.ID}, Secret: r.Secret()}
	if err := r.Destroy(); err != nil {
		return fmt.Errorf("destroy record: %w", err)
	}
	return reveal(n, past.Voters, logger)
}

// settle returns once nobody acts under a term of the lineage. A program acts no more once the
// kernel proves that it has ended, or else from its deadline on. What a hook has set up ends
// when the hook has run with `none`, or else at its deadline too.
func settle(past *record.Past, hooks *endings) error {
	until, doubt := int64(0), election.Name("")
	wait := func(row election.Authority) {
		if at := int64(row.Until); row.Term != 0 && at > until {
			until, doubt = at, row.Election
		}
	}
	left := map[election.Name]election.Authority{} // those whose hook runs
	for _, row := range past.Rows {
		acts := past.Actors[row.Election]
		switch runs := hooks.running[row.Election]; {
		case !quiet(acts.Program):
			wait(row)
		case acts.Hook.Term == 0:
		case !runs || !acts.Hook.Finished: // a run under way is killed by its guard, nobody knows when
			wait(row)
		default:
			left[row.Election] = row
		}
	}
	a, err := alarm.New()
	if err != nil {
		return err
	}
	defer a.Close()
	for {
		due := until
		for _, row := range left {
			if row.Term != 0 {
				due = max(due, int64(row.Until))
			}
		}
		switch now := alarm.Now(); {
		case until == never:
			return fmt.Errorf("what acts in %s has no deadline", doubt)
		case due < now || due == 0:
			return nil
		}
		a.Set(max(due, due+1)) // never has none after it
		select {
		case <-a.C:
		case run := <-hooks.results:
			if run.failed {
				wait(left[run.of])
			}
			delete(left, run.of)
		}
	}
}

// quiet reports whether the program does not act, so that no deadline must be waited for.
func quiet(p record.Program) bool {
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

// reveal sends the obituary to all other voters.
func reveal(n obituary.Notice, voters []record.Voter, logger *slog.Logger) error {
	datagram, err := obituary.Encode(n)
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return fmt.Errorf("publish obituary: %w", err)
	}
	defer conn.Close()
	others, sent := 0, 0
	for i := range repeats {
		if i > 0 {
			<-time.After(repeatEvery)
		}
		others = 0
		for _, v := range voters {
			if v.Peer == n.Holder.Peer || !v.Gossip.IsValid() {
				continue
			}
			others++
			if _, err := conn.WriteToUDPAddrPort(datagram, netip.AddrPortFrom(v.Gossip.Addr().Unmap(), v.Gossip.Port())); err == nil {
				sent++
			}
		}
	}
	if others > 0 && sent == 0 {
		return errors.New("publish obituary: no voter could be reached")
	}
	logger.Info("an obituary was sent: nothing acts for this agent's lineage any more", "voters", others, "lineage", n.Holder.Lineage)
	return nil
}
