package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/settings"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/netns"
)

type Cluster struct {
	dir     *Dir
	memory  *Dir // for the agents' records; nil: agents keep no records, unless dir is in memory
	hosts   []*Host
	network *netns.Network // nil on loopback
	disks   bool           // Config.DiskFaults
	spawner *spawner       // for hosts that have no namespaces, no disk faults and no changed clock
	closing sync.Once
}

// New lays out a cluster with a key of its own. It starts no agent. The caller must Close the
// cluster.
func New(c Config) (*Cluster, error) {
	if c.Program == nil {
		return nil, errors.New("lay out a cluster: no program to run")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.DiskFaults {
		if err := canIntercept(); err != nil {
			return nil, unavailable("lay out a cluster with disk faults", err.Error())
		}
	}
	dir, err := NewDir()
	if err != nil {
		return nil, err
	}
	// The agents' records must not outlive the kernel, so they are in memory. Some systems lack this directory.
	memory, _ := newDirIn(memory)
	cluster := &Cluster{dir: dir, memory: memory, disks: c.DiskFaults}
	if err := cluster.layAll(c); err != nil {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		return nil, errors.Join(err, cluster.Close(over))
	}
	return cluster, nil
}

func (cluster *Cluster) layAll(c Config) (err error) {
	if cluster.spawner, err = newSpawner(func() error { return nil }); err != nil {
		return err
	}
	var where []place
	if c.Net == Namespaces {
		if cluster.network, err = netns.New(c.Agents, c.Seed); err != nil {
			return err
		}
		for i := range c.Agents {
			where = append(where, place{cluster.network.Host(i).Addr, settings.DefaultGossipPort, settings.DefaultPeerPort})
		}
	} else if where, err = places(c.Agents); err != nil {
		return err
	}
	key := filepath.Join(cluster.dir.Path, "key")
	if err := os.WriteFile(key, []byte(settings.NewKey()+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the cluster key: %w", err)
	}
	called := c.Names()
	for i := range called {
		h, err := cluster.lay(c, key, called, where, i)
		if err != nil {
			return err
		}
		cluster.hosts = append(cluster.hosts, h)
	}
	return nil
}

// maxSeeds is how many other agents the configuration of an agent names; gossip finds the rest.
const maxSeeds = 3

func (cluster *Cluster) lay(c Config, key string, called []string, where []place, i int) (*Host, error) {
	dir := filepath.Join(cluster.dir.Path, called[i])
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lay out %s: %w", called[i], err)
	}
	config := c.common()
	config.Name = called[i]
	config.DataDir, config.KeyFile = filepath.Join(dir, "data"), key
	config.Socket = filepath.Join(dir, "sock") // the agent's lease pages are in the same folder
	if cluster.memory != nil {
		config.RecordDir = filepath.Join(cluster.memory.Path, called[i])
		if err := os.Mkdir(config.RecordDir, 0o700); err != nil {
			return nil, fmt.Errorf("lay out %s: %w", called[i], err)
		}
	}
	config.Bind = where[i].addr.String()
	config.GossipPort, config.PeerPort = where[i].gossip, where[i].peer
	config.Voters = called[:min(len(called), maxVoters)]
	for j, p := range where {
		if j != i && len(config.Join) < maxSeeds {
			config.Join = append(config.Join, net.JoinHostPort(p.addr.String(), strconv.Itoa(p.gossip)))
		}
	}
	if c.Adjust != nil {
		c.Adjust(i, &config)
	}
	config, err := config.Resolve()
	if err == nil {
		err = config.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", called[i], err)
	}
	r := &sandbox{data: config.DataDir, disk: c.DiskFaults}
	if cluster.network != nil {
		r.space = cluster.network.Host(i)
	}
	return &Host{name: called[i], config: config, dir: dir, program: c.Program, onExit: c.OnExit, sandbox: r, shared: cluster.spawner}, nil
}

func (c *Cluster) Dir() string { return c.dir.Path }

// Hosts returns all hosts, in the order of Config.Names.
func (c *Cluster) Hosts() []*Host { return c.hosts }

func (c *Cluster) Host(name string) (*Host, bool) {
	return each.First(c.hosts, func(h *Host) bool { return h.Name() == name })
}

// Close asks all agents to end, kills those that still run when ctx ends, and waits for them.
// If ctx has ended already, it kills them at once. Then it removes all files. A second call
// does nothing.
func (c *Cluster) Close(ctx context.Context) (err error) {
	c.closing.Do(func() { err = c.close(ctx) })
	return err
}

func (c *Cluster) close(ctx context.Context) error {
	for _, h := range c.hosts {
		h.close()
		h.lift()
		if ctx.Err() == nil {
			_, _ = h.Terminate() // the host may be down
			_, _ = h.Thaw()      // a frozen agent would not react
		}
	}
	var errs []error
	for _, h := range c.hosts {
		select {
		case <-h.Done():
		case <-ctx.Done():
			errs = append(errs, h.end())
		}
	}
	errs = append(errs, each.Of(c.hosts, (*Host).clear)...)
	if c.spawner != nil {
		c.spawner.close()
	}
	if c.network != nil {
		errs = append(errs, c.network.Close())
	}
	if c.memory != nil {
		errs = append(errs, c.memory.Close())
	}
	return errors.Join(append(errs, c.dir.Close())...)
}

// patience is how long a killed process may take to be gone. A process that waits in the
// kernel for a broken disk never ends.
const patience = 5 * time.Second

func (h *Host) end() error {
	_, _ = h.Kill()
	select {
	case <-h.Done():
		return nil
	case <-time.After(patience):
		return fmt.Errorf("end %s: process %d was killed and is still there", h.Name(), h.PID())
	}
}

// close prevents that further processes start on this host.
func (h *Host) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// lift ends starvation and a slow disk, which would delay the end of the host's processes.
func (h *Host) lift() {
	h.starve(false)
	if h.sandbox.disk {
		_ = h.sandbox.slow(0) // fails only without a disk
	}
}

// clear ends the programs on the host and closes its sandbox. The host's agent must have
// ended.
func (h *Host) clear() error {
	h.mu.Lock()
	for _, p := range h.programs {
		_ = p.Process.Kill() // the program may have ended
	}
	for _, thread := range h.spawners {
		thread.close()
	}
	h.spawners = nil
	h.mu.Unlock()
	h.weight.Lock()
	defer h.weight.Unlock()
	h.busy.End()
	return h.sandbox.close()
}
