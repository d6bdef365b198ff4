package elector

import (
	"fmt"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// inquiries returns what a has asked b since the last call.
func (s *solo) inquiries() (asked []election.Inquiry) {
	for _, m := range s.take() {
		if q, ok := m.Message.(election.Inquiry); ok && m.To == "b" {
			asked = append(asked, q)
		}
	}
	return asked
}

// report is a voter's report about one election: b leads it in that term.
func report(q election.Inquiry, term election.Term) election.Report {
	return election.Report{ID: q.ID, Election: q.Election, Voter: true, Roster: soloRoster, Records: []election.Record{
		{Election: q.Election, Term: term, Holder: election.Holder{Peer: "b", Lineage: 1}, Remaining: time.Second}}}
}

func TestAnInquiryIsAboutOneElection(t *testing.T) {
	o := newScaled(t, 3, 200, 200)
	for _, of := range []election.Name{"", job("a", 7), "unheard-of"} {
		o.sent = nil
		o.hear("b", election.Inquiry{ID: 5, Election: of})
		r := o.sent[0].Message.(election.Report)
		want := map[election.Name]int{"": 200, job("a", 7): 1}[of]
		if r.ID != 5 || r.Election != of || len(r.Records) != want {
			t.Errorf("asked about %q: %d records, of %q", of, len(r.Records), r.Election)
		}
		if want == 1 && (r.Records[0].Election != of || r.Records[0].Remaining <= 0) {
			t.Errorf("told %+v", r.Records[0])
		}
	}
}

// A Report about one election does not count as the first Report of a peer: it does not show that
// the other elections have no leader.
func TestAReportAboutOneElectionInformsOfNoOther(t *testing.T) {
	o := newSolo(t, nil)
	for _, p := range []election.PeerID{"b", "c"} {
		o.step(election.PeerLost{Peer: p})
		o.connect(p, election.Report{Voter: true, Roster: soloRoster, Stamp: 5, Election: "pay"})
	}
	if informed, _ := (&entry{e: o.e}).Informed(); informed {
		t.Error("informed of all elections by what was told of one")
	}
	o.hear("b", election.Report{Voter: true, Roster: soloRoster, Stamp: 5})
	if informed, _ := (&entry{e: o.e}).Informed(); !informed {
		t.Error("not informed by a majority's reports")
	}
}

// Readers of one election share a question. A reader that comes after the question was asked waits
// for the next question, because the answers may be older than its own.
func TestReadersShareTheQuestionThatIsAskedAfterTheyCame(t *testing.T) {
	o := newSolo(t, nil)
	o.take()
	inquire := func(r election.RequestID) { o.step(election.Inquire{Election: "pay", Request: r}) }
	inquire(1)
	first := o.inquiries()
	for r := range election.RequestID(50) {
		inquire(2 + r)
	}
	if more := o.inquiries(); len(first) != 1 || len(more) != 0 {
		t.Fatalf("asked %v, then %v", first, more)
	}
	o.hear("b", report(first[0], 3))
	o.hear("c", report(first[0], 3))
	if len(o.replies) != 1 || o.replies[0].Request != 1 || o.replies[0].Leader.Term != 3 {
		t.Fatalf("the first answer is for %+v", o.replies)
	}
	second := o.inquiries()
	if len(second) != 1 || second[0].ID == first[0].ID {
		t.Fatalf("those who waited are asked for by %v", second)
	}
	o.hear("b", report(first[0], 3)) // late
	if len(o.replies) != 1 {
		t.Fatal("an answer to the question before counts")
	}
	o.hear("b", report(second[0], 4))
	o.hear("c", report(second[0], 4))
	if len(o.replies) != 51 || len(o.inquiries()) != 0 {
		t.Fatalf("%d were answered", len(o.replies)-1)
	}
	for i, r := range o.replies[1:] {
		if r.Request != election.RequestID(2+i) || r.Refusal != nil || r.Leader.Term != 4 {
			t.Fatalf("reply %d is %+v", i, r)
		}
	}
}

// Each reader is answered or refused within a vote timeout, whatever the voters do.
func TestEachReaderIsAnsweredWithinAVoteTimeout(t *testing.T) {
	o := newSolo(t, nil)
	o.take()
	began, timeout := o.now, voteTimeout
	came := map[election.RequestID]election.Instant{}
	for r := election.RequestID(1); o.now < began.Add(2*timeout); r++ {
		came[r] = o.now
		o.step(election.Inquire{Election: election.Name(fmt.Sprint("pay-", r%2)), Request: r})
		o.now = o.now.Add(timeout / 10)
		o.step(election.Tick{})
		for _, reply := range o.replies {
			if waited := o.now.Sub(came[reply.Request]); reply.Refusal == nil || waited > timeout*11/10 {
				t.Fatalf("reader %d was told %+v after %s", reply.Request, reply.Refusal, waited)
			}
			delete(came, reply.Request)
		}
		o.replies = nil
	}
	if len(came) > 11 {
		t.Errorf("%d readers still wait", len(came))
	}
}

func TestQuestionsAndTheirReadersAreBounded(t *testing.T) {
	o := newSolo(t, nil)
	for i := range maxInquiries {
		o.step(election.Inquire{Election: election.Name(fmt.Sprint("pay-", i)), Request: 1})
	}
	for range maxReaders {
		o.step(election.Inquire{Election: "pay-0", Request: 2})
	}
	if len(o.replies) != 0 {
		t.Fatalf("refused %+v", o.replies)
	}
	for _, name := range []election.Name{"another", "pay-0"} {
		o.replies = nil
		o.step(election.Inquire{Election: name, Request: 3})
		if len(o.replies) != 1 || o.replies[0].Refusal == nil || o.replies[0].Refusal.Why != election.DeniedQuestions {
			t.Errorf("%s: %+v", name, o.replies)
		}
	}
}
