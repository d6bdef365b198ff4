package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"slices"
	"strconv"
)

// peer is who is at the other end of a Unix socket, as the kernel vouches.
type peer struct {
	uid, gid uint32
	pid      int32 // 0: the system does not tell
	// groups are the supplementary ones the kernel tells of, and allGroups says
	// that there are no others.
	groups    []uint32
	allGroups bool
}

type peerKey struct{}

// withPeer notes the peer of a new connection; a TCP connection has none.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if l, ok := c.(*limitedConn); ok {
		c = l.Conn
	}
	p, err := peerOf(c)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// peerOf asks the kernel.
func peerOf(c net.Conn) (peer, error) {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return peer{}, errors.New("ask for the peer: not a Unix socket")
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("ask for the peer: %w", err)
	}
	var p peer
	var asked error
	if err := raw.Control(func(fd uintptr) { p, asked = credentials(int(fd)) }); err != nil {
		return peer{}, fmt.Errorf("ask for the peer: %w", err)
	}
	if asked != nil {
		return peer{}, fmt.Errorf("ask for the peer: %w", asked)
	}
	return p, nil
}

// Owner is the agent's own user and group.
type Owner struct {
	UID, GID uint32
	// Groups returns the supplementary groups of a user, for a system whose
	// kernel does not tell those of the process; nil looks them up in the system's
	// database.
	Groups func(uid uint32) ([]string, error)
}

// authorize returns why the peer of a connection may change nothing.
func (o Owner) authorize(ctx context.Context) error {
	p, ok := ctx.Value(peerKey{}).(peer)
	if !ok {
		return errors.New("changes are only taken from processes of this host, over the Unix socket")
	}
	if p.uid == 0 || p.uid == o.UID || p.gid == o.GID || slices.Contains(p.groups, o.GID) {
		return nil
	}
	groups := o.Groups
	if groups == nil {
		groups = systemGroups
	}
	gid := strconv.FormatUint(uint64(o.GID), 10)
	if !p.allGroups {
		if found, err := groups(p.uid); err == nil && slices.Contains(found, gid) {
			return nil
		}
	}
	return fmt.Errorf("user %d may look but not change: only root, the agent's user %s and members of its group %s may",
		p.uid, userName(o.UID), groupName(gid))
}

func systemGroups(uid uint32) ([]string, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil, fmt.Errorf("look up user: %w", err)
	}
	return u.GroupIds()
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

func groupName(gid string) string {
	if g, err := user.LookupGroupId(gid); err == nil {
		return g.Name
	}
	return gid
}
