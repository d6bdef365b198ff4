// Package report shows what the testbed saw: who led when on which host, the faults,
// how long takeovers took, what more agents cost.
//
// It guarantees one self-contained HTML page, that needs nothing from the
// network and runs no script; readable in light and dark, on paper and without
// colour, since patterns, shapes and words say the same; every text in
// it is escaped; equal input gives an equal page. Charts can be written as SVG
// files, too.
//
// It draws what a recording or a bench report says and judges nothing. What is
// too small to see is drawn as small as can be seen, never left out: a leader, a
// fault and an overlap always have a mark. A recording of real agents has no
// single messages, only their counts; messages are drawn from simulated runs.
package report
