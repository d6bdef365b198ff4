package hosts

// Means is how one kind of fault works in a cluster.
type Means struct {
	Fault string
	How   string // "" if it does not
	Why   string // it does not
}

// Means tells what each kind of fault works by here, or why it does not. Faults
// that are signals work everywhere.
func (c *Cluster) Means() []Means {
	links := Means{Fault: "links", How: "network namespaces, and a switch in the testbed's process"}
	full := Means{Fault: "full disk", How: "a small file system in memory for each host"}
	slow := Means{Fault: "slow disk", How: "fsync waits for the testbed (seccomp)"}
	rate := Means{Fault: "clock rate", How: "clock_gettime asks the testbed (seccomp)"}
	if c.network == nil {
		links = Means{Fault: links.Fault, Why: "the hosts share the loopback interface"}
		full = Means{Fault: full.Fault, Why: "the hosts share the machine's disk"}
	}
	if !c.disks {
		const why = "the cluster was laid out without DiskFaults"
		full, slow = Means{Fault: full.Fault, Why: why}, Means{Fault: slow.Fault, Why: why}
	}
	if err := canIntercept(); err != nil {
		rate = Means{Fault: rate.Fault, Why: err.Error()}
	}
	starve, memory := newBurden("means").means()
	limit := Means{Fault: "memory limit", How: memory}
	if memory == "" {
		limit.Why = "only on Linux"
	}
	return []Means{links, full, slow, rate, {Fault: "starvation", How: starve}, limit}
}
