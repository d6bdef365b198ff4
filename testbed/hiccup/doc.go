// Package hiccup records when the machine was paused: when a thread that had slept
// and wanted to run was not let run, or a small write did not reach the disk, for
// much longer than either ever takes by itself. A hypervisor that gives the
// processors to others does that, a host that is paused, a quota, a busy disk. The
// way and the name are those of jHiccup (Gil Tene, 2012).
//
// It guarantees that programs which only use their processors are not what it
// measures: its threads, one for each processor, do nothing but sleep and look at
// the clock, so a scheduler that is fair runs them at once, however busy the others
// are. A hiccup that goes on is reported as far as it has come. It does not know who
// took the time: programs that use up the quota they share with it, or the disk's
// writes, make hiccups as others do. Nor does it see what lasts less than Least.
package hiccup
