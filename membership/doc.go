// Package membership finds the agents of a cluster and suspects those that fell silent. It
// is a small interface to hashicorp/memberlist (SWIM, Das, Gupta and Motivala 2002, with the
// Lifeguard refinements, Dadgar 2017).
//
// # Guarantees
//
//   - A View is immutable, sorted, and holds each agent once, this one included.
//   - A member enters a View only after its signature was verified and Config.Judge accepted it. A new member
//     must also answer a question, which a recording can't. An owner of its name need not, unless its lineage
//     had ended or another member has the name. Nor must a node that gossip has listed as live for minutes.
//   - Views keep coming: seeds and lost members are tried again without end, so that a
//     healed partition is merged.
//   - Memberlist receives only messages made with a cluster key that have the form of what an
//     agent sends. Streams that are not yet checked take at most 8 MiB together. Members and
//     seeds are served however many strangers connect.
//   - All that is kept is bounded. New, Update and the callbacks never block on the network.
//
// It does not guarantee that two agents see the same View at the same moment, that a member shown as
// alive can be reached, or that one shown as dead is dead: gossip finds and suspects, and decides
// nothing. A member proves its identity with its own key. Anyone who has the cluster key may be a member.
// Without a cluster key, anybody who reaches the port can join, and can declare members dead.
//
// It assumes that a live member answers within Pace's timeouts. A slower member is
// suspected, then declared dead, and comes back by itself. Wall clocks only decide which of
// two agents with one name is senior, and which of two lineages of one agent is newer.
package membership
