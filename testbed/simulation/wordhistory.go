package simulation

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/testbed/history"
)

// wordHistory is what programs did with the words of elections. Its judge knows nothing of ranks: porcupine
// searches for one order of the writes, and of what leaders read, that explains all answers (G8).
type wordHistory struct {
	operations map[*contestLog][]porcupine.Operation
	unknown    []*writing // writes that were answered without their outcome
}

// read adds the word that a new leader's programs get.
func (h *wordHistory) read(l *contestLog, word election.Word, now int64) {
	h.operations[l] = append(h.operations[l], porcupine.Operation{Input: history.WordOperation{Reads: true}, Call: now,
		Output: history.WordResult{Known: true, Word: word}, Return: now})
}

// wrote adds a write with its answer. A refusal for a reason that is not listed below means that nothing was
// written.
func (h *wordHistory) wrote(q *writing, r election.Reply, now int64) {
	result := history.WordResult{Known: true, Word: r.Word}
	if r.Refusal != nil {
		switch r.Refusal.Why {
		case election.DeniedWordChanged:
			result.Changed = true
		case election.DeniedWordRemains:
		case election.DeniedWordUnknown:
			h.unknown = append(h.unknown, q)
			return
		default:
			return
		}
	}
	h.operations[q.log] = append(h.operations[q.log], q.operation(result, now))
}

func (q *writing) operation(result history.WordResult, end int64) porcupine.Operation {
	return porcupine.Operation{Input: history.WordOperation{If: q.If, Text: q.Text}, Call: q.called, Output: result, Return: end}
}

// judge searches for an order of each election's operations. Of the writes whose outcome is not known, a
// deletion may happen at any time or never, and a text that was read was written before. It ignores the others.
func (s *scribe) judge() {
	all := maps.Clone(s.history.operations)
	for _, q := range slices.AppendSeq(slices.Clone(s.history.unknown), maps.Values(s.asked)) {
		end := int64(math.MaxInt64)
		if q.Text != "" {
			end = q.until
		}
		if end > 0 {
			all[q.log] = append(slices.Clip(all[q.log]), q.operation(history.WordResult{}, end))
		}
	}
	for _, l := range slices.SortedFunc(maps.Keys(all), func(a, b *contestLog) int { return cmp.Compare(a.index, b.index) }) {
		if s.w.violation == nil && porcupine.CheckOperationsTimeout(history.Word(), all[l], judging) == porcupine.Illegal {
			s.w.fail("register", "no order of %d operations on the word of %s explains their answers", len(all[l]), l.name)
		}
	}
}
