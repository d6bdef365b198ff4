package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// strikeCut cuts some agents off from others: one agent, a pair, or a group. The cut has one
// direction or both, and it closes the connections at once, or agents notice it later.
func (w *world) strikeCut(r *rand.Rand) {
	in := make([]bool, len(w.agents))
	switch r.IntN(3) {
	case 0:
		in[w.victim(r).id] = true
	case 1:
		w.cutPair(r, w.victim(r), w.anyone(r))
		return
	default:
		for i := range in {
			in[i] = chance(r, 0.5)
		}
	}
	var pairs [][2]*agent
	for i, a := range w.agents {
		for j, b := range w.agents {
			if in[i] && !in[j] {
				pairs = append(pairs, [2]*agent{a, b})
			}
		}
	}
	w.cutPairs(r, pairs)
}

func (w *world) cutPair(r *rand.Rand, a, b *agent) {
	if a != b {
		w.cutPairs(r, [][2]*agent{{a, b}})
	}
}

func (w *world) cutPairs(r *rand.Rand, pairs [][2]*agent) {
	loud := chance(r, 0.4)
	there, back := true, true
	if !loud {
		there = pick(r, true, true, false)
		back = !there || r.IntN(2) == 0
	}
	noticed := w.lasts(r) // by a keep-alive, unless the cut heals earlier
	if len(pairs) > 0 {
		w.note(nil, "CUT %s, %s", direction(pairs, there, back), loudly(loud))
	}
	for _, p := range pairs {
		a, b := p[0], p[1]
		w.setCut(a, b, there, back, w.cut)
		if loud {
			w.hangUp(a, b, true)
		} else {
			w.later(noticed, func() {
				if !w.joined(a, b) {
					w.hangUp(a, b, true)
				}
			})
		}
		w.sight(a, b, w.rumourTime())
		w.sight(b, a, w.rumourTime())
	}
	w.later(w.lasts(r), func() {
		if len(pairs) > 0 {
			w.note(nil, "MEND %s", direction(pairs, there, back))
		}
		for _, p := range pairs {
			w.setCut(p[0], p[1], there, back, w.mend)
			w.sight(p[0], p[1], w.rumourTime())
			w.sight(p[1], p[0], w.rumourTime())
		}
	})
}

// direction describes between which agents a cut loses messages, and in which direction.
func direction(pairs [][2]*agent, there, back bool) string {
	var from, to []string
	for _, p := range pairs {
		from, to = append(from, string(p[0].peer)), append(to, string(p[1].peer))
	}
	slices.Sort(from)
	slices.Sort(to)
	left, right := strings.Join(slices.Compact(from), " "), strings.Join(slices.Compact(to), " ")
	switch {
	case there && back:
		return left + " <-> " + right
	case there:
		return left + " -> " + right
	}
	return right + " -> " + left
}

func (w *world) setCut(a, b *agent, there, back bool, set func(a, b *agent)) {
	if there {
		set(a, b)
	}
	if back {
		set(b, a)
	}
}

// strikeHangUp closes connections for no reason. Agents dial again.
func (w *world) strikeHangUp(r *rand.Rand) {
	a := w.victim(r)
	loud := chance(r, 0.8)
	w.note(a, "loses connections, loud=%v", loud)
	for _, b := range w.agents {
		if chance(r, 0.5) && b != a {
			w.hangUp(a, b, loud)
		}
	}
}
