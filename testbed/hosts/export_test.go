package hosts

import "github.com/doyen-election/doyen/testbed/netns"

// Link is what happens to packets on their way from one host to another.
func (c *Cluster) Link(from, to string) (netns.Link, error) {
	i, err := c.index(from)
	if err != nil {
		return netns.Link{}, err
	}
	j, err := c.index(to)
	if err != nil {
		return netns.Link{}, err
	}
	return c.network.Link(i, j), nil
}
