package elector

import (
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// maxInquiries bounds the questions to a majority under way at once.
const maxInquiries = 64

// inquiry is one question to a majority of the voters: who leads?
type inquiry struct {
	request  election.RequestID
	election election.Name
	deadline election.Instant
	answers  map[election.PeerID]election.Standing
}

func (e *Elector) inquire(in election.Inquire) {
	switch {
	case !e.cfg.Quorum:
		e.reply(in.Request, &election.Refusal{Code: "no_quorum", Message: "this cluster runs without quorum (--quorum=false)"})
		return
	case !e.hasMajority():
		e.reply(in.Request, &election.Refusal{Code: "no_quorum", Message: "a majority of the voters can't be reached"})
		return
	case len(e.inquiries.keys) >= maxInquiries:
		e.reply(in.Request, &election.Refusal{Code: "busy", Message: "too many questions to the voters at once; ask again"})
		return
	}
	e.inquired++
	e.inquiries.put(e.inquired, &inquiry{request: in.Request, election: in.Election,
		deadline: e.now.Add(e.cfg.Timing.voteTimeout()), answers: map[election.PeerID]election.Standing{}})
	for _, v := range e.roster.All() {
		e.send(v.Peer, election.Inquiry{ID: e.inquired})
	}
}

// answered counts a voter's report towards the inquiry it answers. A majority
// that promised the same term to the same holder, in promises that still run,
// says who leads; one that has answered without such a promise says nobody.
func (e *Elector) answered(from election.PeerID, r election.Report) {
	q := e.inquiries.get(r.ID)
	if q == nil || !r.Voter {
		return
	}
	q.answers[from] = election.Standing{}
	for _, s := range r.Standings {
		if s.Election == q.election && s.Remaining > 0 && s.Term > e.roster.Floor { // up to the floor all are over (R4)
			q.answers[from] = s
		}
	}
	if !quorum.Confirmed(e.roster, func(id election.PeerID) bool { _, ok := q.answers[id]; return ok }) {
		return
	}
	var newest election.Standing
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
		return // the voters still to answer may decide it
	}
	if !quorum.Confirmed(e.roster, agree) {
		newest = election.Standing{}
	}
	e.out.Replies = append(e.out.Replies, election.Reply{Request: q.request, Leader: newest})
	e.inquiries.remove(r.ID)
}

func (e *Elector) expireInquiries() {
	ids := e.inquiries.keys
	for i, q := range e.inquiries.rows {
		if id := ids[i]; e.now >= q.deadline {
			e.reply(q.request, &election.Refusal{Code: "no_quorum", Message: "a majority of the voters did not answer, or did not agree, in time"})
			e.inquiries.remove(id)
		}
	}
}

func (e *Elector) inquiryWake() election.Instant {
	wake := election.Never
	for _, q := range e.inquiries.rows {
		wake = min(wake, q.deadline)
	}
	return wake
}
