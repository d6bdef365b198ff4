package record

import (
	"net/netip"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Config is where a record is and whose.
type Config struct {
	Path  string
	Peer  election.PeerID
	Run   election.RunID // of this life
	Born  int64          // when it started, in Unix nanoseconds
	Lease time.Duration  // that this life is configured with
}

// Past is all that the former life left on record.
type Past struct {
	election.Past // Life is the former life's number: this one has the next
	Actors        map[election.Name]Actors
	Voters        []Voter
}

// Actors is what acts under this agent's term in one election: half a row of the record.
type Actors struct {
	Program Program // zero: none
	Hook    Hook
}

// MaxSockets is how many sockets of one program are recorded.
const MaxSockets = 6

// Program is the program that was notified that it leads, or is about to be.
type Program struct {
	Campaign string
	UID      uint32
	PID      int32
	Started  uint64             // when its process did, as /proc/PID/stat has it; 0: not known
	Space    uint64             // the namespaces in which PID and Sockets mean something
	Sockets  [MaxSockets]uint64 // inodes of its connections, then zeros; none: nothing proves that it is dead
	More     bool               // it has more connections than that: nothing proves that it is dead
	Priority int
	Told     election.Term // the newest term that it was notified of
	Stopped  election.Term // the newest term under which it is known to act no more: by receipt, proof or deadline
}

// Hook is what is known of the hook's runs of "leading".
type Hook struct {
	Term     election.Term // of the newest run
	Finished bool
}

// MaxVoters is how many voters' addresses are recorded.
const MaxVoters = 32

// Voter is where one voter can be reached.
type Voter struct {
	Peer   election.PeerID
	Gossip netip.AddrPort
	Stream netip.AddrPort
}

// Record is the record of the life that runs. Its methods may be called by several
// goroutines; those of a nil Record do nothing.
type Record struct{}

// Open takes over the record at the path, or begins a new one. With a past, this life goes on
// with its lineage. Without, a new lineage begins; the problem is why, if there was
// something at the path, in one line. A nil Record, which is always with a problem, means
// that none can be kept there.
func Open(c Config) (r *Record, past *Past, problem error) { return nil, nil, nil }

// Lineage returns that of this life, with its number.
func (r *Record) Lineage() election.Lineage { return election.Lineage{} }

// Secret is what ends the lineage when it is revealed; zero without a record.
func (r *Record) Secret() [32]byte { return [32]byte{} }

// Write puts what has changed on record. After an error there is no record any more, and the
// lineage has no next life.
func (r *Record) Write(l *election.LifeRecord) error { return nil }

// WriteActors puts on record what acts, or is about to, in an election that Write has put there.
func (r *Record) WriteActors(name election.Name, a Actors) error { return nil }

// SetTick records the instant by which this life will tick next.
func (r *Record) SetTick(next election.Instant) {}

// SetVoters records where the voters can be reached.
func (r *Record) SetVoters(all []Voter) error { return nil }

// Destroy ends the lineage: when it returns, no life can begin with the record, whatever
// error is returned (K6).
func (r *Record) Destroy() error { return nil }

// Close gives the lock and the memory back. The record stays for the next life.
func (r *Record) Close() error { return nil }
