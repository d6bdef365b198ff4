package hosts

import "github.com/doyen-election/doyen/testbed/netns"

// Link is what happens to packets on their way from one host to another.
func (c *Cluster) Link(from, to string) (netns.Link, error) {
	ends, err := c.indices([]string{from, to})
	if err != nil {
		return netns.Link{}, err
	}
	return c.network.Link(ends[0], ends[1]), nil
}
