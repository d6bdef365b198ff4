// Package access decides which user may do what over the socket API.
//
// It guarantees that a right rests only on what the kernel reports: the user and the groups of the
// connecting process. Root and the agent's own user have every right. All others have the rights
// that the configuration gives. If the configuration has no rules, members of the agent's group may
// campaign and hand over. The names in the configuration are looked up once, when it is read; an unknown
// name is an error.
//
// Every user who can connect can read. The modes of the socket and of its directory decide which users can
// connect. This package restricts the programs of its host. It does not restrict which other agents may lead.
package access

import (
	"cmp"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strconv"

	"github.com/doyen-election/doyen/election"
)

// Right is a class of calls.
type Right string

// The rights. Reading needs none. Campaign and HandOver are given for each election.
const (
	Campaign Right = "campaign"  // be a candidate
	HandOver Right = "hand-over" // resign, transfer
	Admin    Right = "admin"     // drain, leave, voters, keys; and all that the two others allow
)

// Rest is the key of the rules for all elections that have no rules by name.
const Rest = "*"

// DefaultMaxCandidacies is how many candidacies the programs of one user may have by
// default.
const DefaultMaxCandidacies = 64

// List holds users and groups by name or number, as an operator writes them.
type List struct{ Users, Groups []string }

// Rules are the rules of one election in a configuration. A field that is nil is taken from the rules of Rest.
type Rules struct {
	Campaign, HandOver *List
	MaxPriority        *int
}

// Config is the access part of a configuration. A field that is nil has its default.
type Config struct {
	// Admin are the users who may do everything, besides root and the agent's user.
	Admin *List
	// Elections has the rules by election. The key Rest has those of all other elections. Once any
	// rules are given, the agent's group has no rights by default.
	Elections map[string]Rules
	// MaxCandidacies bounds the candidacies of one user; 0: DefaultMaxCandidacies.
	MaxCandidacies int
}

// Owner is the agent's own user and group.
type Owner struct {
	UID, GID uint32
	// Groups returns the supplementary groups of a user. It is called if the kernel has not reported
	// all groups of a process; nil: the system's database is asked instead.
	Groups func(uid uint32) ([]string, error)
}

// Error is a part of the configuration that can't be used.
type Error struct {
	Key     string // the key in the configuration, such as access.admin
	Problem string
	Hint    string
}

func (e *Error) Error() string { return e.Key + ": " + e.Problem + "; " + e.Hint }

// ids are the resolved users and groups of a list.
type ids struct{ Users, Groups []uint32 }

// rules are the resolved rules of one election.
type rules struct {
	Campaign, HandOver ids
	MaxPriority        int
	own                []Right // the rights that the election's own entry sets, even if it gives them to nobody
}

// Policy is a resolved configuration. It never changes, so any goroutine may ask it.
type Policy struct {
	owner          Owner
	admin          ids
	elections      map[string]rules // always has Rest
	maxCandidacies int
	assumed        bool // no rules were configured: the agent's group has the default rights
	// foreignUIDs means that the kernel may report overflowID for users of other user namespaces.
	// foreignGIDs means the same for groups.
	foreignUIDs, foreignGIDs bool
}

// Resolve looks up the names of a configuration. Errors are of type *Error.
func Resolve(c Config, owner Owner) (*Policy, error) {
	p := &Policy{owner: owner, elections: map[string]rules{}, maxCandidacies: cmp.Or(c.MaxCandidacies, DefaultMaxCandidacies)}
	p.foreignUIDs, p.foreignGIDs = foreignIDs()
	if p.maxCandidacies < 0 {
		return nil, &Error{"access.max-candidacies", fmt.Sprintf("%d is not a valid number of candidacies", c.MaxCandidacies), "use 1 or more"}
	}
	nobody := ids{[]uint32{}, []uint32{}} // so that JSON shows empty lists and not null
	var err error
	if p.admin, err = p.list("access.admin", c.Admin); err != nil {
		return nil, err
	}
	if len(c.Elections) == 0 {
		p.assumed = true
		group := ids{nobody.Users, []uint32{owner.GID}}
		p.elections[Rest] = rules{Campaign: group, HandOver: group, MaxPriority: election.MaxPriority}
		return p, nil
	}
	if p.elections[Rest], err = p.rules(Rest, c.Elections[Rest], rules{Campaign: nobody, HandOver: nobody, MaxPriority: election.MaxPriority}); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Elections)) {
		if name == Rest {
			continue
		}
		if p.elections[name], err = p.rules(name, c.Elections[name], p.elections[Rest]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// rules resolves the rules of one election. A field of given that is nil is taken from rest.
func (p *Policy) rules(name string, given Rules, rest rules) (rules, error) {
	key := section(name)
	if name != Rest && !election.ValidName(name) {
		return rules{}, &Error{key, fmt.Sprintf("%q is not a valid election name", name),
			"a name has 1 to 63 characters from a-z, 0-9, dot, dash and underscore, and starts with a letter or digit; \"*\" is all others"}
	}
	r := rest
	r.own = nil
	for _, l := range []struct {
		right Right
		given *List
		to    *ids
	}{{Campaign, given.Campaign, &r.Campaign}, {HandOver, given.HandOver, &r.HandOver}} {
		if l.given == nil {
			continue
		}
		r.own = append(r.own, l.right)
		var err error
		if *l.to, err = p.list(key+"."+string(l.right), l.given); err != nil {
			return rules{}, err
		}
	}
	if given.MaxPriority != nil {
		r.MaxPriority = *given.MaxPriority
		if r.MaxPriority < 0 || r.MaxPriority > election.MaxPriority {
			return rules{}, &Error{key + ".max-priority", fmt.Sprintf("%d is not between 0 and %d", r.MaxPriority, election.MaxPriority), "the highest leads; 0 never leads"}
		}
		if given.Campaign == nil && r.Campaign.empty() {
			return rules{}, &Error{key + ".max-priority", "has no effect: no user or group may campaign there",
				"add `campaign: {groups: [NAME]}` beside it, or under \"*\""}
		}
	}
	return r, nil
}

// section is the key of an election's rules in the configuration.
func section(election string) string {
	if election == Rest {
		election = strconv.Quote(Rest)
	}
	return "access.elections." + election
}

// list resolves the names of a list. A nil list has nobody.
func (p *Policy) list(key string, l *List) (found ids, err error) {
	l = cmp.Or(l, &List{})
	if found.Users, err = lookUp(key, "user", l.Users, uidOf, p.foreignUIDs); err == nil {
		found.Groups, err = lookUp(key, "group", l.Groups, gidOf, p.foreignGIDs)
	}
	return found, err
}

// lookUp resolves the names of users or of groups to sorted numbers. foreign means that the kernel
// may report overflowID for users or groups of other user namespaces.
func lookUp(key, kind string, names []string, lookup func(string) (string, error), foreign bool) ([]uint32, error) {
	found := []uint32{}
	for _, name := range names {
		id, err := number(name, lookup)
		if err != nil {
			return nil, &Error{key, fmt.Sprintf("%s %q does not exist on this host", kind, name), "create it, correct the name, or give the " + kind + "'s number"}
		}
		if foreign && id == overflowID {
			return nil, &Error{key, fmt.Sprintf("%d means every user of other user namespaces here", overflowID), "name another user or group"}
		}
		found = append(found, id)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Group looks up a group by its name or number. Errors are of type *Error, and name the given
// key of the configuration.
func Group(key, name string) (uint32, error) {
	_, foreign := foreignIDs()
	found, err := lookUp(key, "group", []string{name}, gidOf, foreign)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// User looks up a user by its name or number.
func User(name string) (uint32, error) { return number(name, uidOf) }

func uidOf(name string) (string, error) {
	u, err := user.Lookup(name)
	return cmp.Or(u, &user.User{}).Uid, err
}

func gidOf(name string) (string, error) {
	g, err := user.LookupGroup(name)
	return cmp.Or(g, &user.Group{}).Gid, err
}

// number returns a user's or a group's number. A name that is a number already is not looked
// up, so that a number without an entry in the database can be used.
func number(name string, lookup func(string) (string, error)) (uint32, error) {
	n, err := strconv.ParseUint(name, 10, 32)
	if err == nil && n < 1<<32-1 { // the system uses 1<<32-1 for "none"
		return uint32(n), nil
	}
	found, err := lookup(name)
	if err != nil {
		return 0, err
	}
	n, err = strconv.ParseUint(found, 10, 32)
	return uint32(n), err
}
