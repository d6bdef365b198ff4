// Package hiccup records when the machine was paused. During a pause a thread that wakes up does not
// run, or a small write does not reach the disk, for much longer than usual.
// Causes are a hypervisor that gives the processors to others, a host that is paused, a quota, a
// busy disk. Method and name are those of jHiccup (Gil Tene, 2012).
//
// Programs that only use their processors cause no hiccups. The package's threads, one for each
// processor, only sleep and read the clock, so a fair scheduler runs them at once, however busy
// other threads are. Of a hiccup that has not ended, the part until now is reported. The package
// does not know what took the time: programs also cause hiccups if they use up a quota that they
// share with this process, or write much to the disk. A pause shorter than Least is not seen.
package hiccup
