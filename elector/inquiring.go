package elector

import (
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

const (
	maxInquiries = 64  // in progress at the same time; each election has at most one
	maxReaders   = 256 // that wait for the next inquiry of one election
)

// inquiry asks a majority of the voters who leads, for all readers that came before it was sent. Later
// readers wait for the next inquiry, because the answers to this one may be too old for them.
type inquiry struct {
	election election.Name
	readers  []reader
	next     []reader
	answers  map[election.PeerID]election.Record
}

type reader struct {
	request  election.RequestID
	deadline election.Instant
}

func (e *Elector) inquire(in election.Inquire) {
	r := reader{request: in.Request, deadline: e.now.Add(e.cfg.VoteTimeout())}
	var under *inquiry
	if i := slices.IndexFunc(e.inquiries.rows, func(q *inquiry) bool { return q.election == in.Election }); i >= 0 {
		under = e.inquiries.rows[i]
	}
	switch {
	case !e.cfg.Quorum:
		e.reply(in.Request, &election.Refusal{Why: election.DeniedNoVoters})
	case !e.hasMajority():
		e.reply(in.Request, &election.Refusal{Why: election.DeniedNoMajority})
	case under == nil && len(e.inquiries.keys) >= maxInquiries, under != nil && len(under.next) >= maxReaders:
		e.reply(in.Request, &election.Refusal{Why: election.DeniedQuestions})
	case under != nil:
		under.next = append(under.next, r)
	default:
		e.ask(in.Election, []reader{r})
	}
}

func (e *Elector) ask(name election.Name, readers []reader) {
	e.inquired++
	e.inquiries.put(e.inquired, &inquiry{election: name, readers: readers, answers: map[election.PeerID]election.Record{}})
	for _, v := range e.roster.All() {
		e.send(v.Peer, election.Inquiry{ID: e.inquired, Election: name})
	}
}

// conclude ends an inquiry, and starts the next one for the readers that have come since.
func (e *Elector) conclude(id uint64, q *inquiry) {
	e.inquiries.remove(id)
	if len(q.next) > 0 {
		e.ask(q.election, q.next)
	}
}

// answered counts a voter's report. A holder leads if a majority has promised it the same term, and these
// promises have not expired. Nobody leads if a majority has answered and no answer has such a promise, or if
// all voters have answered and no holder has such a majority.
func (e *Elector) answered(from election.PeerID, r election.Report) {
	q := e.inquiries.get(r.ID)
	if q == nil || !r.Voter || r.Election != q.election || e.older(from) {
		return
	}
	q.answers[from] = election.Record{}
	for _, s := range r.Records {
		if s.Election == q.election && s.Remaining > 0 && s.Term > e.roster.Floor { // promises of terms up to the floor are not renewed any more (R5)
			q.answers[from] = s
		}
	}
	if !quorum.Confirmed(e.roster, func(id election.PeerID) bool { _, ok := q.answers[id]; return ok }) {
		return
	}
	var newest election.Record
	for _, id := range slices.Sorted(maps.Keys(q.answers)) {
		if s := q.answers[id]; s.Term > newest.Term {
			newest = s
		}
	}
	agree := func(id election.PeerID) bool {
		s, ok := q.answers[id]
		return ok && s.Term == newest.Term && s.Holder == newest.Holder
	}
	if !quorum.Confirmed(e.roster, agree) && len(q.answers) < len(e.roster.All()) {
		return // the answers of the other voters may still decide
	}
	if !quorum.Confirmed(e.roster, agree) {
		newest = election.Record{}
	}
	for _, reader := range q.readers {
		e.out.Replies = append(e.out.Replies, election.Reply{Request: reader.request, Leader: newest})
	}
	e.conclude(r.ID, q)
}

// expireInquiries refuses the readers whose deadline has passed, and concludes inquiries that
// have no readers left. It returns the next deadline.
func (e *Elector) expireInquiries() election.Instant {
	wake := election.Never
	ids := e.inquiries.keys
	for i, q := range e.inquiries.rows {
		for _, waiting := range []*[]reader{&q.readers, &q.next} { // each is sorted by deadline, the earliest first
			for len(*waiting) > 0 && e.now >= (*waiting)[0].deadline {
				e.reply((*waiting)[0].request, &election.Refusal{Why: election.DeniedNoAnswer})
				*waiting = (*waiting)[1:]
			}
			if len(*waiting) > 0 {
				wake = min(wake, (*waiting)[0].deadline)
			}
		}
		if len(q.readers) == 0 {
			e.conclude(ids[i], q)
		}
	}
	return wake
}
