// Package report shows what the testbed saw: who led when on which host, the faults, how long
// takeovers took, what more agents cost.
//
// A report is one self-contained HTML page. It needs nothing from the network and runs no
// script. It is readable in light and dark, on paper and without colour: shapes and words say
// the same. Every text in it is escaped. Equal input gives an equal page. Charts can
// also be written as SVG files.
//
// The package draws what a recording or a bench report says, and judges nothing. Where there is
// too much to draw, leaders and faults stay, and of these the newest; an overlap is never left
// out. A recording has no single messages, only their counts.
package report
