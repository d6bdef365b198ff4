package doctor

import (
	"context"
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/doyen-election/doyen/agent/settings"
)

// Mistakes returns the mistakes of a configuration. If root asks about the configuration of the packages' unit,
// the check has the rights of the user that the unit names.
func Mistakes(ctx context.Context, c settings.Config, packaged bool) []error {
	if !packaged || os.Geteuid() != 0 {
		return c.Mistakes()
	}
	return mistakesOfUnit(ctx, c, systemctl)
}

func mistakesOfUnit(ctx context.Context, c settings.Config, show func(context.Context, string) (string, error)) (all []error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, _ := show(ctx, ownUnit)
	is := properties(out)
	u, err := user.Lookup(is["User"])
	former, unknown := syscall.Getgroups()
	if errors.Join(err, unknown) != nil {
		return c.Mistakes()
	}
	var groups []int
	names, _ := u.GroupIds()
	for _, name := range append(names, strings.Fields(is["SupplementaryGroups"])...) {
		if g, err := user.LookupGroup(name); err == nil {
			name = g.Gid
		}
		if id, err := strconv.Atoi(name); err == nil {
			groups = append(groups, id)
		}
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	defer func() { _, _, _ = syscall.Seteuid(0), syscall.Setegid(0), syscall.Setgroups(former) }()
	// A container may forbid this. Then the check is made with root's rights.
	_, _, _ = syscall.Setgroups(groups), syscall.Setegid(gid), syscall.Seteuid(uid)
	return c.Mistakes()
}
