package serve

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/doyen-election/doyen/agent/words"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/membership"
)

// rotation replaces the cluster keys of all agents by a new one. Each step is done on all agents
// before the next: accept the new key, use it, drop the others. It makes a new key each time: one
// of a rotation that stopped may be known to an agent that is now to have none.
type rotation struct {
	*keyChanges
	without []string // names of agents that get no key
	caller  string
	key     string
	print   string // the key's fingerprint
	agents  []membership.Member
	skipped []string // names of agents that were not reached

	mu  sync.Mutex
	old map[election.PeerID][]api.Key // what each agent had when it began to use the new key
}

// keyStep is what came of a step: at which agents it is done, and at which not, with the reason.
type keyStep struct {
	done, failed []string // names; the failed ones with the reason
	ok           []bool   // of each agent that was asked
}

// rotate carries out a rotation. It goes on when its caller goes away: half of one helps nobody.
func (k *keyChanges) rotate(r *http.Request, request api.KeysRequest) (any, error) {
	if !k.rotating.TryLock() {
		return nil, refusal(api.CodeBusy, "this agent is rotating the keys already")
	}
	defer k.rotating.Unlock()
	if !k.takeTurn(k.Self.Peer) {
		return nil, keysBusy()
	}
	defer k.turn.giveBack()
	n := &rotation{keyChanges: k, without: request.Without, caller: callerWords(r), old: map[election.PeerID][]api.Key{}}
	err := n.prepare(request.Force)
	for _, step := range []func() error{n.accept, n.use, n.drop} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return nil, err
	}
	k.Logger.Info("cluster keys rotated", "in_use", n.print, "agents", 1+len(n.agents), "without", names(n.keyless()))
	return api.Keys{Keys: k.Keyring.Keys(), Message: n.outcome()}, nil
}

// prepare finds the agents that are to have the key, or returns why the key can't be rotated.
func (n *rotation) prepare(force bool) error {
	p := n.Picture()
	if len(n.Keyring.Keys()) == 0 {
		return refusal(api.CodeBadRequest, "this agent runs without a cluster key: start all agents with --key-file")
	}
	for _, name := range n.without {
		if name == n.Name {
			return refusal(api.CodeBadRequest, "this agent makes the key: run the command on an agent that keeps it")
		}
		if !p.knows(name) {
			return refusal(api.CodeNotFound, "no agent of the cluster is named "+clip(name)+": nothing was changed")
		}
	}
	if p.leaving(n.Self.Peer) {
		return refusal(api.CodeBusy, "a change of the voters removes this agent: run the command on another voter")
	}
	members, absent := n.members(p)
	if len(members) > 0 && !p.Status.Quorum.Enabled {
		return refusal(api.CodeNoQuorum, words.NoVoters+", and agents accept keys only from voters: use `doyen keys add`, `use` and `remove` on each host")
	}
	if len(members) > 0 && (n.Other == nil || !p.Status.Roster.Has(n.Self.Peer)) {
		return refusal(api.CodeNotVoter, "this agent is not a voter, and others accept keys only from voters: run the command on the host of a voter")
	}
	found := n.each(members, func(ctx context.Context, m membership.Member) error {
		return n.others.call(ctx, m.Peer, election.Call{Method: http.MethodGet, Path: "/v1/keys", Caller: n.caller}, nil, &api.Keys{})
	})
	problems := found.failed
	for i, m := range members {
		if found.ok[i] {
			n.agents = append(n.agents, m)
		} else {
			n.skipped = append(n.skipped, m.Name)
		}
	}
	for _, m := range absent {
		n.skipped = append(n.skipped, m.Name)
		problems = append(problems, m.Name+" (not connected to gossip)")
	}
	if len(problems) > 0 && !force {
		return refusal(api.CodeKeyMissing, "nothing was changed: agents that can't be reached would be cut off: "+names(problems)+
			". Start or repair them, name them in --without (\"without\":[…]), or go on with --force (\"force\":true)")
	}
	return nil
}

// members returns the other agents that are to have the key: those that gossip shows, and those
// that belong to the cluster and are absent.
func (n *rotation) members(p *Picture) (present, absent []membership.Member) {
	without := func(m membership.Member) bool {
		return m.Peer == n.Self.Peer || n.excluded(p, m)
	}
	return slices.DeleteFunc(slices.Clone(p.View.Members), without), slices.DeleteFunc(p.absent(), without)
}

func (n *rotation) excluded(p *Picture, m membership.Member) bool {
	return slices.Contains(n.without, m.Name) || p.leaving(m.Peer)
}

// accept has all agents accept the new key. If one does not, the key is taken back.
func (n *rotation) accept() error {
	n.key, n.print = n.Keyring.NewKey()
	add := api.KeysRequest{Add: n.key}
	if refused := n.Keyring.ChangeKeys(add); refused != nil {
		return refusal(refused.Code, "nothing was changed: this agent does not accept a new key: "+refused.Message)
	}
	step := n.each(n.agents, func(ctx context.Context, m membership.Member) error {
		if p := n.Picture(); n.excluded(p, m) {
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
			return nil // it does not have the key
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

// use has all agents encrypt with the new key, which all of them accept.
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
	by := "no agent"
	if len(step.done) > 0 {
		by = names(step.done)
	}
	return refusal(api.CodeNotConfirmed, "the rotation stopped half-way: "+names(step.failed)+". The new key "+n.print+
		" is used by "+by+", and accepted by all of them; the old keys are accepted too, so nobody is cut off, and anyone who has an old key can still join. "+
		"Correct that and run the command again: it goes on with another new key")
}

// drop has all agents drop the old keys, since all of them use the new one. A key that another
// rotation gives to an agent meanwhile stays.
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

// all are the agents that are to have the key, this one included.
func (n *rotation) all() []membership.Member {
	return append([]membership.Member{{Member: election.Member{Peer: n.Self.Peer, Name: n.Name}}}, n.agents...)
}

// everywhere carries out a step at all agents, unless one has joined that lacks the new key.
func (n *rotation) everywhere(at func(context.Context, membership.Member) error) keyStep {
	if newcomers := n.check(); newcomers != nil {
		return keyStep{failed: newcomers}
	}
	return n.each(n.all(), at)
}

// check returns the agents that joined since the new key was given out, and lack it.
func (n *rotation) check() (newcomers []string) {
	present, _ := n.members(n.Picture())
	for _, m := range present {
		has := func(o membership.Member) bool { return o.Peer == m.Peer }
		if !slices.ContainsFunc(n.agents, has) && !slices.Contains(n.skipped, m.Name) {
			newcomers = append(newcomers, m.Name+" (it joined meanwhile, and lacks the new key)")
		}
	}
	return newcomers
}

// each carries out a step at all those agents at once.
func (n *rotation) each(agents []membership.Member, at func(context.Context, membership.Member) error) keyStep {
	ctx, cancel := context.WithTimeout(n.ctx, keyTime)
	defer cancel()
	problems := make([]error, len(agents))
	var working sync.WaitGroup
	for i, m := range agents {
		working.Go(func() { problems[i] = at(ctx, m) })
	}
	working.Wait()
	step := keyStep{ok: make([]bool, len(agents))}
	for i, m := range agents {
		if step.ok[i] = problems[i] == nil; step.ok[i] {
			step.done = append(step.done, m.Name)
		} else {
			step.failed = append(step.failed, m.Name+" ("+problems[i].Error()+")")
		}
	}
	n.turn.take(n.Self.Peer, n.Clock()) // for longer
	return step
}

// call asks an agent, which may be this one, for a change of its keys, and returns what they then are. The key is in the body of the call alone, which travels over the authenticated and encrypted stream.
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

// keyless are the names of agents that have no key.
func (n *rotation) keyless() []string {
	p := n.Picture()
	list := append(slices.Clone(n.without), n.skipped...)
	for _, v := range p.Status.Roster.All() {
		if p.leaving(v.Peer) {
			list = append(list, v.Name)
		}
	}
	return list
}

// outcome says who has no key, if there is somebody.
func (n *rotation) outcome() string {
	list := n.keyless()
	if len(list) == 0 {
		return ""
	}
	text := names(list) + " got no key and can't join any more"
	if len(n.skipped) > 0 {
		text += "; copy the key file of an agent that has it to " + names(n.skipped) + ", if it is to come back"
	}
	return text
}

// leaving reports whether a change of the voters under way removes the voter.
func (p *Picture) leaving(id election.PeerID) bool {
	r := p.Status.Roster
	is := func(v election.Voter) bool { return v.Peer == id }
	return r != nil && r.Joint() && r.Has(id) && !slices.ContainsFunc(r.Next, is)
}

// knows reports whether an agent of that name belongs to the cluster, or did in the last day.
func (p *Picture) knows(name string) bool {
	_, votes := p.Status.Roster.Named(name)
	is := func(m membership.Member) bool { return m.Name == name }
	return votes || slices.ContainsFunc(p.View.Members, is) || slices.ContainsFunc(p.View.Departed, is)
}

// absent are the agents that belong to the cluster though gossip does not show them: voters, and
// those that died within a day.
func (p *Picture) absent() []membership.Member {
	var list []membership.Member
	add := func(m membership.Member) {
		same := func(o membership.Member) bool { return o.Peer == m.Peer }
		named := func(o membership.Member) bool { return o.Name == m.Name } // it has another identity now
		if !slices.ContainsFunc(p.View.Members, named) && !slices.ContainsFunc(p.View.Members, same) && !slices.ContainsFunc(list, same) {
			list = append(list, m)
		}
	}
	for _, m := range p.View.Departed {
		if m.Status == membership.Dead {
			add(m)
		}
	}
	for _, v := range p.Status.Roster.All() {
		add(membership.Member{Member: election.Member{Peer: v.Peer, Name: v.Name}})
	}
	return list
}
