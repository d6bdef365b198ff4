package simulation

// strikeCut cuts some agents off from others: one, a pair, or two groups; both
// ways or one; connections closed, or left to be noticed.
func (w *world) strikeCut() {
	in := make([]bool, len(w.agents))
	switch w.rng.IntN(3) {
	case 0:
		in[w.victim().id] = true
	case 1:
		w.cutPair(w.victim(), w.agents[w.rng.IntN(len(w.agents))])
		return
	default:
		for i := range in {
			in[i] = w.chance(0.5)
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
	w.cutPairs(pairs)
}

func (w *world) cutPair(a, b *agent) {
	if a != b {
		w.cutPairs([][2]*agent{{a, b}})
	}
}

func (w *world) cutPairs(pairs [][2]*agent) {
	loud := w.chance(0.4)
	there, back := true, true
	if !loud {
		there, back = pick(w.rng, true, true, false), pick(w.rng, true, true, false)
	}
	noticed := w.lasts() // by a keep-alive, unless it is mended before
	for _, p := range pairs {
		a, b := p[0], p[1]
		w.note(nil, "CUT %s and %s: there %v, back %v, loud %v", a.peer, b.peer, there, back, loud)
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
	w.later(w.lasts(), func() {
		for _, p := range pairs {
			w.note(nil, "MEND %s and %s", p[0].peer, p[1].peer)
			w.setCut(p[0], p[1], there, back, w.mend)
			w.sight(p[0], p[1], w.rumourTime())
			w.sight(p[1], p[0], w.rumourTime())
		}
	})
}

func (w *world) setCut(a, b *agent, there, back bool, set func(a, b *agent)) {
	if there {
		set(a, b)
	}
	if back {
		set(b, a)
	}
}

// strikeHangUp closes connections for no reason; they are redialled.
func (w *world) strikeHangUp() {
	a := w.victim()
	loud := w.chance(0.8)
	w.note(a, "loses connections, loud=%v", loud)
	for _, b := range w.agents {
		if b != a && w.chance(0.5) {
			w.hangUp(a, b, loud)
		}
	}
}
