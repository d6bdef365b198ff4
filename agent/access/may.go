package access

import (
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/doyen-election/doyen/internal/base/each"
)

// overflowID is the number that the kernel reports for a user or group that has
// no number in this user namespace.
const overflowID = 65534

// Who is the process at the other end of a connection, as the kernel reports it.
type Who struct {
	UID, GID uint32
	// Groups are the supplementary groups that the kernel reports. AllGroups means that
	// the process has no others.
	Groups    []uint32
	AllGroups bool
}

// Own reports whether the user is root or the agent's user.
func (p *Policy) Own(uid uint32) bool {
	if p.foreignUIDs && uid == overflowID {
		return false
	}
	return uid == 0 || uid == p.owner.UID
}

// Owns reports whether the caller w may act for a program of the user: the caller is that user,
// or root, or the agent's user.
func (p *Policy) Owns(w Who, uid uint32) bool {
	return p.Own(w.UID) || w.UID == uid && !(p.foreignUIDs && uid == overflowID)
}

// May returns why the process does not have the right; nil: it has the right. The election
// matters only for Campaign and HandOver.
func (p *Policy) May(w Who, right Right, election string) error {
	if p.may(w, right, election) {
		return nil
	}
	key, also := "access.admin", ""
	what := "change this agent or the cluster"
	switch right {
	case Campaign:
		what = "be a candidate in " + election
	case HandOver:
		what = "hand over " + election
	}
	if right != Admin {
		key, also = section(election)+"."+string(right), p.replaced(right, election)
	}
	return fmt.Errorf("user %s may not %s: it lacks the right %q, which %s have; an administrator can give it with `%s` in the agent's configuration file%s",
		UserName(w.UID), what, right, p.holders(right, election), key, also)
}

// replaced returns a warning for an operator who follows the proposal of May. Users who have the right by the present
// setting lose it, unless the new setting names them again. The warning is empty if nobody would lose the right.
func (p *Policy) replaced(right Right, election string) string {
	if p.assumed {
		return fmt.Sprintf("; with access.elections only what it gives applies, in every election, so give group %s there what it is to keep (%q is every other election)",
			groupName(p.owner.GID), Rest)
	}
	if slices.Contains(p.elections[election].own, right) || p.elections[Rest].who(right).empty() {
		return ""
	}
	return fmt.Sprintf("; in %s that list replaces the one of %q, so repeat there who is to keep the right", election, Rest)
}

func (p *Policy) may(w Who, right Right, election string) bool {
	return p.Own(w.UID) || p.in(w, p.admin) || p.in(w, p.of(election).who(right))
}

// who returns the users and groups that have the right. The rules of an election give Admin to nobody.
func (r rules) who(right Right) ids {
	switch right {
	case Campaign:
		return r.Campaign
	case HandOver:
		return r.HandOver
	}
	return ids{}
}

// MaxPriority returns the highest priority that the process may have in the election, and
// whether there is such a bound. Root, the agent's user and those with Admin have no bound.
func (p *Policy) MaxPriority(w Who, election string) (highest int, bounded bool) {
	if p.Own(w.UID) || p.in(w, p.admin) {
		return 0, false
	}
	return p.of(election).MaxPriority, true
}

// MaxCandidacies is how many candidacies the programs of one user may have. It is not a bound
// for root and the agent's user.
func (p *Policy) MaxCandidacies() int { return p.maxCandidacies }

// PriorityKey is the key of the setting that bounds priorities in the election.
func (p *Policy) PriorityKey(election string) string {
	if _, own := p.elections[election]; !own {
		election = Rest
	}
	return section(election) + ".max-priority"
}

func (p *Policy) of(election string) rules {
	if r, ok := p.elections[election]; ok {
		return r
	}
	return p.elections[Rest]
}

// in reports whether the list has the user of the process, or one of its groups.
func (p *Policy) in(w Who, list ids) bool {
	if !(p.foreignUIDs && w.UID == overflowID) && slices.Contains(list.Users, w.UID) {
		return true
	}
	if len(list.Groups) == 0 {
		return false
	}
	for _, g := range append([]uint32{w.GID}, w.Groups...) {
		if !(p.foreignGIDs && g == overflowID) && slices.Contains(list.Groups, g) {
			return true
		}
	}
	if w.AllGroups || p.foreignUIDs && w.UID == overflowID {
		return false
	}
	groups := p.owner.Groups
	if groups == nil {
		groups = systemGroups
	}
	found, err := groups(w.UID)
	return err == nil && slices.ContainsFunc(list.Groups, func(g uint32) bool {
		return slices.Contains(found, strconv.FormatUint(uint64(g), 10))
	})
}

// holders returns, as text, which users and groups have the right.
func (p *Policy) holders(right Right, election string) string {
	names := []string{"root"}
	if p.owner.UID != 0 {
		names = append(names, "the agent's user "+UserName(p.owner.UID))
	}
	const most = 16 // how many names the text has at most; the configuration shows all
	for _, l := range []ids{p.admin, p.of(election).who(right)} {
		names = append(names, l.names("user ", "members of group ")...)
	}
	if len(names) > most {
		names = append(names[:most], "others")
	}
	if len(names) == 1 {
		return "only " + names[0] + " and the agent's user"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func systemGroups(uid uint32) ([]string, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil, fmt.Errorf("look up user: %w", err)
	}
	return u.GroupIds()
}

// UserName returns the name of a user, or the number if no name is known.
func UserName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

func groupName(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}

// String returns the policy as a section of a configuration file, which resolves to the same
// policy. The section has users and groups by number, and their names in comments.
func (p *Policy) String() string {
	var b strings.Builder
	own := "root"
	if p.owner.UID != 0 {
		own += " and " + UserName(p.owner.UID)
	}
	fmt.Fprintf(&b, "access: # %s may do everything\n", own)
	fmt.Fprintf(&b, "  admin: %s\n", p.admin)
	fmt.Fprintf(&b, "  max-candidacies: %d\n  elections:\n", p.maxCandidacies)
	for _, name := range slices.Sorted(maps.Keys(p.elections)) {
		r := p.elections[name]
		fmt.Fprintf(&b, "    %q:\n      campaign: %s\n      hand-over: %s\n", name, r.Campaign, r.HandOver)
		if !r.Campaign.empty() {
			fmt.Fprintf(&b, "      max-priority: %d\n", r.MaxPriority)
		}
	}
	return b.String()
}

func (l ids) empty() bool { return len(l.Users)+len(l.Groups) == 0 }

// names returns the names of the list's users and groups, with the prefix user or group.
func (l ids) names(user, group string) []string {
	users := each.Of(l.Users, func(u uint32) string { return user + UserName(u) })
	return append(users, each.Of(l.Groups, func(g uint32) string { return group + groupName(g) })...)
}

func (l ids) String() string {
	s := "{users: " + numbers(l.Users) + ", groups: " + numbers(l.Groups) + "}"
	if !l.empty() {
		s += " # " + strings.Join(l.names("", ""), ", ")
	}
	return s
}

func numbers(all []uint32) string { return strings.ReplaceAll(fmt.Sprint(all), " ", ", ") }
