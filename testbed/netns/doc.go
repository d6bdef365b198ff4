// Package netns makes one machine look like several hosts: network namespaces, each with an
// address of its own, joined by a switch. The link of each ordered pair of hosts can be delayed,
// slowed, made lossy and cut while it carries packets.
//
// A host's interface is a TUN device. The switch is this process, which reads every packet of
// one device and writes it to another. It forwards IPv4 between its hosts and nothing else. On
// a perfect link, a packet is delivered within some 20 µs, and costs this process less than
// 10 µs. A delayed packet is delivered some 50 µs later than its delay asks for. These times
// were measured on a machine with an idle processor, and the tests log them. No upper bound can
// be promised. Queues are bounded: what does not fit is lost.
//
// Random faults follow from a seed, with a stream of random numbers for each pair of hosts. The
// same packets in the same order meet the same faults.
//
// The namespaces have no name, and the devices live as long as their files are open. So
// nothing is left behind, however the process ends. The process needs /dev/net/tun and the
// right to make network namespaces (root, or a user namespace, see Rerun). The network has no
// broadcast, no IPv6, and no way out of the machine.
package netns
