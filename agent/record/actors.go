package record

import "github.com/doyen-election/doyen/election"

// Actors is what acts under this agent's term in one election: half a row of the record.
type Actors struct {
	Program Program // zero: none
	Hook    Hook
}

const (
	// MaxSockets is how many sockets of one program are recorded.
	MaxSockets  = 6
	maxCampaign = campaignWords*8 - 1
)

// Program is the program that was notified that it leads, or is about to be.
type Program struct {
	Campaign string // the campaign's ID, of at most 31 bytes
	UID      uint32
	PID      int32
	Started  uint64             // when the process started, as /proc/PID/stat has it; 0: not known
	Space    uint64             // the namespaces in which PID and Sockets mean something
	Sockets  [MaxSockets]uint64 // inodes of its connections, then zeros; none: its end can't be proven
	More     bool               // it has more connections than fit: its end can't be proven
	Priority int
	Told     election.Term // the newest term of which it was notified
	Stopped  election.Term // the newest term under which it is known to act no more: by receipt, proof or deadline
}

// Hook is what is known of the hook's runs for "leading".
type Hook struct {
	Term     election.Term // of the newest run
	Finished bool
}

const (
	flagFinished = 1 << iota
	flagMore
)

// putActors puts the actors, the second half of a row, into words.
func putActors(to *[actorsRoom]uint64, a *Actors) []uint64 {
	p := &a.Program
	putText(to[:campaignWords], p.Campaign)
	rest := to[campaignWords:]
	rest[0] = uint64(p.UID) | uint64(uint32(p.PID))<<32
	rest[1], rest[2] = p.Started, p.Space
	copy(rest[3:], p.Sockets[:])
	rest = rest[3+MaxSockets:]
	var flags uint64
	if a.Hook.Finished {
		flags |= flagFinished
	}
	if p.More {
		flags |= flagMore
	}
	rest[0], rest[1], rest[2], rest[3] = uint64(p.Told), uint64(p.Stopped), uint64(uint32(p.Priority))|flags<<32, uint64(a.Hook.Term)
	return to[:]
}

func getActors(from []uint64) (a Actors, ok bool) {
	if len(from) != actorsRoom {
		return a, false
	}
	p := &a.Program
	p.Campaign, ok = text(from[:campaignWords])
	rest := from[campaignWords:]
	p.UID, p.PID, p.Started = uint32(rest[0]), int32(rest[0]>>32), rest[1]
	p.Space = rest[2]
	copy(p.Sockets[:], rest[3:])
	rest = rest[3+MaxSockets:]
	flags := rest[2] >> 32
	p.Told, p.Stopped, p.Priority = election.Term(rest[0]), election.Term(rest[1]), int(uint32(rest[2]))
	p.More, a.Hook.Finished, a.Hook.Term = flags&flagMore != 0, flags&flagFinished != 0, election.Term(rest[3])
	return a, ok
}
