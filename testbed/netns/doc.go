// Package netns makes hosts of one machine: network namespaces, each with an
// address of its own, joined by a switch whose links can be delayed, slowed,
// made lossy and cut, for each ordered pair of hosts, while they carry packets.
//
// A host's interface is a TUN device; the switch is this process, which reads
// every packet of one device and writes it to another. It forwards IPv4 between
// its hosts and nothing else. A packet on a perfect link is handed over within
// some 20 µs, and costs this process less than 10; one that is delayed is handed
// over some 50 µs after its time. Both were measured on a machine that had a
// processor to spare, as the tests log it: how late at most can't be promised.
// Queues are bounded; what does not fit is lost.
//
// Random faults follow from a seed, a stream of numbers for each pair: the same
// packets in the same order meet the same faults.
//
// The namespaces have no name, and the devices live as long as their files are
// open, so nothing is left behind however the process ends. It needs the right
// to make network namespaces (root, or a user namespace, see Rerun), and
// /dev/net/tun. There is no broadcast, no IPv6, and no host outside.
package netns
