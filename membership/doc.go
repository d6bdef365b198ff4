// Package membership finds the agents of a cluster and suspects the ones that fell
// silent: hashicorp/memberlist (SWIM, Das, Gupta and Motivala 2002, with the Lifeguard
// refinements, Dadgar 2017) behind a small interface.
//
// It guarantees that a View is immutable, sorted, and holds each agent once, this one
// included; that a member enters a View only after its signature was verified and
// Config.Judge accepted it; that Views keep coming: seeds and lost members are tried
// again without end, so a healed partition is merged; that all it keeps is bounded; and
// that New, Update and the callbacks never block on the network. Nothing reaches
// memberlist that was not made with a cluster key, or that an agent does not send;
// before that, all streams together take at most 8 MiB, and members and seeds find a
// place among any number of strangers. A member whose process run had ended, or whose
// name another has, enters a View only once it has answered by its gossip name: a
// recording of it does not.
//
// It does not guarantee that two agents see the same View at the same moment, that an
// alive member can be reached, or that a dead one is dead: gossip finds and suspects, it
// decides nothing. Members are authenticated by their own key; only the cluster key
// decides who may be one. Without a cluster key, anybody who reaches the port can join,
// and can declare members dead.
//
// Of time it assumes that a live member answers within Pace's timeouts; a slower one is
// suspected, then declared dead, and comes back by itself. Wall clocks only order the
// seniority of two agents with one name, and two boots of one agent.
package membership
