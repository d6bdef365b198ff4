package serve

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/membership"
)

// rotation replaces the cluster keys of the voters, and of agents that somebody named, by a new
// key. Its steps are: accept the new key, use it, drop the others. Each step is done at all
// agents before the next. Every rotation makes a new key: an agent that must not have the key now may
// know the key of an earlier rotation that stopped half-way.
//
// Anyone who has an old key can join under any name, also while the rotation is under way. So
// before the key is made, the rotation chooses by identity which agents get it, and asks each of
// them for its keys: the connection proves the agent's identity.
type rotation struct {
	*keyChanges
	request api.KeysRequest
	also    []election.PeerID // agents that the request names: in With, beside the voters; in Only, instead of the voters
	caller  string
	key     string
	print   string // the key's fingerprint
	agents  []membership.Member
	skipped []string // names of agents that were not reached

	mu  sync.Mutex
	old map[election.PeerID][]api.Key // the keys that each agent had when it started to use the new key
}

// keyStep is the result of a step: the agents at which it is done, and those at which it failed.
type keyStep struct {
	done, missed []membership.Member
	failed       []string // the names of the missed agents, each with the reason
}

// rotate carries out a rotation, even if the caller has gone: half a rotation would help nobody.
func (k *keyChanges) rotate(r *http.Request, request api.KeysRequest) (any, error) {
	if !k.rotating.TryLock() {
		return nil, refusal(api.CodeBusy, "this agent is rotating the keys already")
	}
	defer k.rotating.Unlock()
	if !k.takeTurn(k.Self.Peer) {
		return nil, keysBusy()
	}
	defer k.turn.giveBack()
	n := &rotation{keyChanges: k, request: request, caller: callerWords(r), old: map[election.PeerID][]api.Key{}}
	for _, step := range []func() error{n.prepare, n.accept, n.use, n.drop} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	outcome := n.outcome()
	k.Logger.Info("cluster keys rotated", "in_use", n.print, "outcome", outcome)
	return api.Keys{Keys: k.Keyring.Keys(), Message: outcome}, nil
}

// prepare finds the agents that are to have the key, or returns why the keys can't be rotated.
func (n *rotation) prepare() error {
	p := n.Picture()
	if len(n.Keyring.Keys()) == 0 {
		return refusal(api.CodeBadRequest, "this agent runs without a cluster key: start all agents with --key-file")
	}
	if p.leaving(n.Self.Peer) {
		return refusal(api.CodeBusy, "a change of the voters removes this agent: run the command on another voter")
	}
	if err := n.choose(p); err != nil {
		return err
	}
	members, absent := n.members(p)
	rest := slices.DeleteFunc(p.all(), func(m membership.Member) bool { return m.Peer == n.Self.Peer || n.excludes(p, m) })
	if len(rest) > 0 && !p.Status.Quorum.Enabled {
		return refusal(api.CodeNoQuorum, words.NoVoters+", and agents accept keys only from voters: use `doyen keys add`, `use` and `remove` on each host")
	}
	if len(rest) > 0 && (n.Other == nil || !p.Status.Roster.Has(n.Self.Peer)) {
		return refusal(api.CodeNotVoter, "this agent is not a voter, and others accept keys only from voters: run the command on the host of a voter")
	}
	if err := n.undecided(p, rest); err != nil {
		return err
	}
	found := n.each(members, func(ctx context.Context, m membership.Member) error {
		return n.others.call(ctx, m.Peer, election.Call{Method: http.MethodGet, Path: "/v1/keys", Caller: n.caller}, nil, &api.Keys{})
	})
	n.agents, n.skipped = found.done, memberNames(slices.Concat(found.missed, absent))
	problems := found.failed
	for _, m := range absent {
		problems = append(problems, m.Name+" (not connected to gossip)")
	}
	if len(problems) > 0 && !n.request.Force {
		return refusal(api.CodeKeyMissing, "nothing was changed: agents that can't be reached would be cut off: "+names(problems)+
			". Start or repair them, name them in --without (\"without\":[…]), or go on with --force (\"force\":true)")
	}
	return nil
}

// choose reads from the request which agents are to have the key, and which are not.
func (n *rotation) choose(p *Picture) error {
	for _, name := range n.request.Without {
		if name == n.Name || name == string(n.Self.Peer) {
			return refusal(api.CodeBadRequest, "this agent makes the key: run the command on an agent that keeps it")
		}
		if !p.knows(name) {
			return refusal(api.CodeNotFound, "no agent of the cluster is named "+clip(name)+": nothing was changed")
		}
	}
	also, err := p.identities(slices.Concat(n.request.With, n.request.Only))
	n.also = also
	return err
}

// undecided refuses the rotation if the request does not name every agent that is not a voter. An agent that is not
// named may be a stranger, or one that must not be cut off.
func (n *rotation) undecided(p *Picture, rest []membership.Member) error {
	open := slices.DeleteFunc(rest, func(m membership.Member) bool { return n.includes(p, m) })
	if len(open) > 0 && len(n.request.Only) == 0 && !n.request.Force {
		return refusal(api.CodeKeyMissing, "nothing was changed: these agents do not vote, and would be cut off: "+identified(open...)+
			". Name those that are yours in --with (\"with\":[…]), and the others in --without (\"without\":[…]); or all that are to have the key in --only (\"only\":[…])")
	}
	return nil
}

// members returns the other agents that are to have the key: those that gossip shows, and those
// that belong to the cluster though gossip does not show them.
func (n *rotation) members(p *Picture) (present, absent []membership.Member) {
	others := func(m membership.Member) bool { return m.Peer == n.Self.Peer || !n.includes(p, m) }
	return slices.DeleteFunc(slices.Clone(p.View.Members), others), slices.DeleteFunc(p.absent(), others)
}

// includes reports whether an agent is to have the key.
func (n *rotation) includes(p *Picture, m membership.Member) bool {
	votes := len(n.request.Only) == 0 && p.Status.Roster.Has(m.Peer)
	return (votes || slices.Contains(n.also, m.Peer)) && !n.excludes(p, m)
}

func (n *rotation) excludes(p *Picture, m membership.Member) bool {
	return slices.Contains(n.request.Without, m.Name) || slices.Contains(n.request.Without, string(m.Peer)) || p.leaving(m.Peer)
}

// accept makes all agents accept the new key. If one agent does not, all agents remove the key again.
func (n *rotation) accept() error {
	n.key, n.print = n.Keyring.NewKey()
	add := api.KeysRequest{Add: n.key}
	if refused := n.Keyring.ChangeKeys(add); refused != nil {
		return refusal(refused.Code, "nothing was changed: this agent does not accept a new key: "+refused.Message)
	}
	step := n.each(n.agents, func(ctx context.Context, m membership.Member) error {
		if p := n.Picture(); !n.includes(p, m) {
			return errors.New("a change of the voters began that removes it")
		}
		_, err := n.call(ctx, m, add)
		return err
	})
	if step.failed = append(step.failed, n.check()...); len(step.failed) == 0 {
		return nil
	}
	back := n.each(n.all(), func(ctx context.Context, m membership.Member) error {
		_, err := n.call(ctx, m, api.KeysRequest{Remove: n.print})
		if refused, ok := errors.AsType[*api.ErrorDetail](err); ok && refused.Code == api.CodeNotFound {
			return nil // the agent does not have the key
		}
		return err
	})
	message := "the keys in use are unchanged: not every agent accepted the new key " + n.print + ": " + names(step.failed)
	if len(back.failed) == 0 {
		message += ". It was taken back from the others"
	} else {
		message += ". It could not be taken back from " + names(back.failed) + ": no agent uses it, so this does no harm; `doyen keys remove " + n.print + "` there removes it"
	}
	return refusal(api.CodeNotConfirmed, message+". Nobody is cut off. Correct that and run the command again")
}

// use makes all agents encrypt with the new key, which all of them accept.
func (n *rotation) use() error {
	step := n.everywhere(func(ctx context.Context, m membership.Member) error {
		has, err := n.call(ctx, m, api.KeysRequest{Use: n.print})
		n.mu.Lock()
		defer n.mu.Unlock()
		n.old[m.Peer] = has.Keys
		return err
	})
	if len(step.failed) == 0 {
		return nil
	}
	return refusal(api.CodeNotConfirmed, "the rotation stopped half-way: "+names(step.failed)+". The new key "+n.print+
		" is used by "+cmp.Or(names(memberNames(step.done)), "no agent")+", and accepted by all of them; the old keys are accepted too, so nobody is cut off, and anyone who has an old key can still join. "+
		"Correct that and run the command again: it goes on with another new key")
}

// drop makes all agents drop the keys that they had when they started to use the new one. A key that
// another rotation has given to an agent since then stays.
func (n *rotation) drop() error {
	step := n.everywhere(func(ctx context.Context, m membership.Member) error {
		for _, k := range n.old[m.Peer] {
			if k.Fingerprint == n.print {
				continue
			}
			if _, err := n.call(ctx, m, api.KeysRequest{Remove: k.Fingerprint}); err != nil {
				return err
			}
		}
		return nil
	})
	if len(step.failed) == 0 {
		return nil
	}
	return refusal(api.CodeNotConfirmed, "all agents use the new key "+n.print+", but the old keys were not dropped everywhere: "+names(step.failed)+
		". Nobody of those that have the new key is cut off, and anyone who has an old key can still join those agents. Correct that and run the command again, or `doyen keys remove` there")
}

// all returns the agents that are to have the key, this one included.
func (n *rotation) all() []membership.Member {
	return append([]membership.Member{{Member: election.Member{Peer: n.Self.Peer, Name: n.Name}}}, n.agents...)
}

// everywhere carries out a step at all agents, unless a newcomer lacks the new key (check).
func (n *rotation) everywhere(at func(context.Context, membership.Member) error) keyStep {
	if newcomers := n.check(); newcomers != nil {
		return keyStep{failed: newcomers}
	}
	return n.each(n.all(), at)
}

// check returns the agents that are to have the new key, and joined after it was given out.
func (n *rotation) check() (newcomers []string) {
	present, _ := n.members(n.Picture())
	for _, m := range present {
		if !lists(n.agents, m.Peer) && !slices.Contains(n.skipped, m.Name) {
			newcomers = append(newcomers, m.Name+" (it joined meanwhile, and lacks the new key)")
		}
	}
	return newcomers
}

// each carries out a step at all the given agents at once.
func (n *rotation) each(agents []membership.Member, at func(context.Context, membership.Member) error) keyStep {
	ctx, cancel := context.WithTimeout(n.ctx, keyTime)
	defer cancel()
	problems := together(agents, func(m membership.Member) error { return at(ctx, m) })
	var step keyStep
	for i, m := range agents {
		if problems[i] == nil {
			step.done = append(step.done, m)
		} else {
			step.missed = append(step.missed, m)
			step.failed = append(step.failed, m.Name+" ("+problems[i].Error()+")")
		}
	}
	n.turn.take(n.Self.Peer, n.Clock()) // extends the turn, for the next step
	return step
}

func lists(all []membership.Member, id election.PeerID) bool {
	return slices.ContainsFunc(all, func(m membership.Member) bool { return m.Peer == id })
}

func memberNames(all []membership.Member) []string {
	return each.Of(all, func(m membership.Member) string { return m.Name })
}

// call asks an agent, which may be this one, for a change of its keys, and returns its keys after that.
// A key is only in the body of the call, which travels over the authenticated and encrypted stream.
func (n *rotation) call(ctx context.Context, m membership.Member, request api.KeysRequest) (keys api.Keys, err error) {
	if m.Peer == n.Self.Peer {
		if refused := n.Keyring.ChangeKeys(request); refused != nil {
			return keys, refused
		}
		return api.Keys{Keys: n.Keyring.Keys()}, nil
	}
	err = n.others.call(ctx, m.Peer, election.Call{Method: http.MethodPost, Path: "/v1/keys", Caller: n.caller}, request, &keys)
	return keys, err
}

// outcome lists the agents that have the new key, and the other agents.
func (n *rotation) outcome() string {
	has := n.all()
	without := slices.DeleteFunc(n.Picture().all(), func(m membership.Member) bool { return lists(has, m.Peer) })
	text := identified(has...) + " have the new key"
	if len(without) > 0 {
		text += "; " + identified(without...) + " got no key and can't join any more: if one is to come back, copy the key file of an agent that has the key to its host"
	}
	return text
}

// leaving reports whether the change of the voters that is under way removes the voter.
func (p *Picture) leaving(id election.PeerID) bool {
	r := p.Status.Roster
	is := func(v election.Voter) bool { return v.Peer == id }
	return r != nil && r.Joint() && r.Has(id) && !slices.ContainsFunc(r.Next, is)
}

// knows reports whether an agent of that name or ID belongs to the cluster, or did in the last day.
func (p *Picture) knows(given string) bool {
	_, is := p.Names[election.PeerID(given)]
	return is || slices.Contains(slices.Collect(maps.Values(p.Names)), given)
}

// all returns the agents that gossip shows, and those that belong to the cluster and are absent.
func (p *Picture) all() []membership.Member {
	return append(slices.Clone(p.View.Members), p.absent()...)
}

// absent returns the agents that belong to the cluster though gossip does not show them:
// voters, and agents that died within the last day.
func (p *Picture) absent() []membership.Member {
	list := slices.DeleteFunc(p.Departed(), func(m membership.Member) bool { return m.Status != membership.Dead })
	for _, v := range p.Status.Roster.All() {
		if !lists(p.View.Members, v.Peer) && !lists(list, v.Peer) {
			list = append(list, membership.Member{Member: election.Member{Peer: v.Peer, Name: v.Name}})
		}
	}
	return list
}
