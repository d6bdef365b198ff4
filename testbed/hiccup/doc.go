// Package hiccup records when the machine was paused: when a thread that had slept and wanted
// to run did not run, or a small write did not reach the disk, for much longer than either
// ever takes by itself. Causes are a hypervisor that gives the processors to others, a host
// that is paused, a quota, a busy disk. Method and name are those of jHiccup (Gil Tene, 2012).
//
// Programs that only use their processors cause no hiccups. The package's threads, one for
// each processor, do nothing but sleep and look at the clock, so a fair scheduler runs them at
// once, however busy the others are. A hiccup that goes on is reported as far as it has come.
// The package does not know who took the time: programs also cause hiccups if they use up the
// quota that they share with it, or write much to the disk. It does not see what lasts less
// than Least.
package hiccup
