package serve

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// wordCalls are the calls about the words of elections.
type wordCalls struct{ *Server }

// replace replaces the word of the election that the caller's program leads.
func (s wordCalls) replace(c *call[api.WordRequest]) (any, error) {
	term := election.Term(c.body.Term)
	name, err := s.Campaigns.Acts(c.PathValue("id"), term, s.candidacies.authorized(c.Request))
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.outcomeTime(c.Request)
	defer cancel()
	reply, err := s.Ask(ctx, func(id election.RequestID) election.Input {
		return election.WriteWord{Election: name, Term: term, Text: c.body.Text, Request: id,
			If: election.WordRank{Term: election.Term(c.body.If.Term), Seq: c.body.If.Seq}}
	})
	if err != nil { // the elector may still carry out the write (W5)
		return nil, refusal(api.CodeNotConfirmed, "the word in "+string(name)+" was not confirmed in time; it may be written later: write it again, and `doyen voters` shows which voters are missing")
	}
	if reply.Refusal != nil {
		refused := words.Refusal(reply.Refusal)
		refused.Word = words.Word(reply.Word)
		return nil, refused
	}
	return words.WordID(reply.Word.ID), nil
}

// read answers with the word of an election: from its leader, or else from a majority of the voters.
func (s wordCalls) read(r *http.Request) (any, error) {
	name, err := name(r)
	if err != nil {
		return nil, err
	}
	p := s.Picture()
	if !p.Status.Quorum.Enabled {
		return nil, words.Refusal(&election.Refusal{Why: election.DeniedNoWords, Election: name})
	}
	ctx, cancel := s.outcomeTime(r)
	defer cancel()
	c, _ := p.contest(name)
	switch leader, led := c.LeaderAt(s.Clock()); {
	case led && leader == s.Self:
		reply, err := s.ask(ctx, func(id election.RequestID) election.Input { return election.ReadWord{Election: name, Request: id} })
		return api.ElectionWord{Election: string(name), Word: words.Word(reply.Word), Authority: api.AuthorityLease}, err
	case isForwarded(r):
		return nil, words.Refusal(&election.Refusal{Why: election.DeniedNotLeader, Election: name})
	case led && s.Other != nil:
		var answer api.ElectionWord
		if err := s.others.pass(ctx, r, leader.Peer, nil, &answer); err == nil && answer.Election == string(name) {
			return answer, nil
		}
	}
	if err := s.mayAsk(r, 1); err != nil {
		return nil, err
	}
	return s.ofVoters(ctx, r, name)
}

// ofVoters returns the newest word that a majority of voters reports. Voters with another roster do not count.
func (s wordCalls) ofVoters(ctx context.Context, r *http.Request, name election.Name) (any, error) {
	var mu sync.Mutex
	var newest *api.Word
	var written api.WordID
	roster, answered := s.Picture().Status.Roster, map[election.PeerID]bool{}
	confirmed := func() bool { return quorum.Confirmed(roster, func(id election.PeerID) bool { return answered[id] }) }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var asking sync.WaitGroup
	for _, v := range roster.All() {
		asking.Go(func() {
			answer, err := s.ofVoter(ctx, r, v.Peer, name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || answer.Version != (api.RosterVersion{Driver: uint64(roster.Version.Driver), Counter: roster.Version.Counter}) {
				return
			}
			if answered[v.Peer] = true; confirmed() {
				defer cancel() // stop waiting for voters that hang
			}
			for _, w := range answer.Words {
				if w.Election == string(name) && w.Written.Compare(written) > 0 {
					newest, written = &w.Word, w.Written
				}
			}
		})
	}
	asking.Wait()
	if !confirmed() {
		return nil, words.Refusal(&election.Refusal{Why: election.DeniedNoAnswer})
	}
	return api.ElectionWord{Election: string(name), Authority: api.AuthorityQuorum, Word: newest}, nil
}

// wordsPath is where a voter gives other agents the words that it has.
const wordsPath = "/v1/words"

func (s wordCalls) ofVoter(ctx context.Context, r *http.Request, voter election.PeerID, of election.Name) (answer api.VoterWords, err error) {
	if voter == s.Self.Peer {
		return s.ofThisVoter(ctx, of)
	}
	err = s.others.call(ctx, voter, election.Call{Method: http.MethodGet, Path: wordsPath + "/" + string(of), Caller: callerWords(r)}, nil, &answer)
	return answer, err
}

// ofThisVoter returns the words that this agent has as a voter, of one election or of all.
func (s wordCalls) ofThisVoter(ctx context.Context, of election.Name) (api.VoterWords, error) {
	reply, err := s.ask(ctx, func(id election.RequestID) election.Input { return election.ReadWords{Election: of, Request: id} })
	v := reply.Words.Version
	answer := api.VoterWords{Version: api.RosterVersion{Driver: uint64(v.Driver), Counter: v.Counter}, Words: []api.VoterWord{}}
	for _, w := range reply.Words.Words {
		answer.Words = append(answer.Words, api.VoterWord{Election: string(w.Election), Word: *words.Word(w.Word), Written: words.WordID(w.Word.Rank)})
	}
	if err == nil && v == (election.Version{}) {
		err = words.Refusal(&election.Refusal{Why: election.DeniedNotVoter})
	}
	return answer, err
}

// answerVoter answers another agent with the word that this voter has.
func (s wordCalls) answerVoter(r *http.Request) (any, error) {
	return s.ofThisVoter(r.Context(), election.Name(r.PathValue("name")))
}

// jobsPage is how many jobs an answer to another agent has. Eight always fit into election.MaxCallBody, though each
// byte of a job's 1 KiB may be escaped as six bytes. maxJobs bounds the list of all jobs.
const jobsPage, maxJobs = 8, 1024

// jobs lists the words that are jobs. An agent that is not a voter asks a voter, page by page. The query
// of such a call is the last name that the asking agent has got; empty: none.
func (s wordCalls) jobs(r *http.Request) (any, error) {
	p := s.Picture()
	if p.Status.Roster.Has(s.Self.Peer) {
		all := append([]api.Job{}, p.Jobs...)
		if isForwarded(r) {
			all = slices.DeleteFunc(all, func(j api.Job) bool { return j.Election <= r.URL.RawQuery })
			all = all[:min(len(all), jobsPage)]
		}
		for i, j := range all {
			if c, _ := p.contest(election.Name(j.Election)); j.Running != nil {
				run := *j.Running
				_, run.Held = c.LeaderAt(s.Clock())
				all[i].Running = &run
			}
		}
		return api.Jobs{Jobs: all}, nil
	}
	for _, v := range p.Status.Roster.All() {
		if s.Other != nil && !isForwarded(r) && p.Connected[v.Peer] {
			if all, err := s.jobsOf(r, v.Peer); err == nil {
				return all, nil
			}
		}
	}
	return nil, words.Refusal(&election.Refusal{Why: election.DeniedNotVoter})
}

// jobsOf lists the jobs that a voter knows.
func (s wordCalls) jobsOf(r *http.Request, voter election.PeerID) (api.Jobs, error) {
	all := api.Jobs{Jobs: []api.Job{}}
	for after := ""; len(all.Jobs) < maxJobs; after = all.Jobs[len(all.Jobs)-1].Election {
		var page api.Jobs
		if err := s.others.call(r.Context(), voter, election.Call{Method: http.MethodGet, Path: "/v1/jobs?" + after, Caller: callerWords(r)}, nil, &page); err != nil {
			return all, err
		}
		if len(page.Jobs) == 0 || page.Jobs[0].Election <= after {
			break // the end of the list, or a voter that sends the same jobs again
		}
		all.Jobs = append(all.Jobs, page.Jobs...)
	}
	return all, nil
}
