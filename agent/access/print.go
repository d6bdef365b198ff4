package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// String is the policy as a section of a configuration file that resolves to the
// same policy: numbers, with their names in comments.
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
		fmt.Fprintf(&b, "    %q:\n      campaign: %s\n      hand-over: %s\n", name, r.campaign, r.handOver)
		if !r.campaign.empty() {
			fmt.Fprintf(&b, "      max-priority: %d\n", r.maxPriority)
		}
	}
	return b.String()
}

func (l ids) empty() bool { return len(l.users)+len(l.groups) == 0 }

// String is the list in YAML's short form, with the names as a comment.
func (l ids) String() string {
	var names []string
	for _, u := range l.users {
		names = append(names, UserName(u))
	}
	for _, g := range l.groups {
		names = append(names, groupName(g))
	}
	s := "{users: " + numbers(l.users) + ", groups: " + numbers(l.groups) + "}"
	if len(names) > 0 {
		s += " # " + strings.Join(names, ", ")
	}
	return s
}

func numbers(all []uint32) string {
	text := make([]string, len(all))
	for i, n := range all {
		text[i] = strconv.FormatUint(uint64(n), 10)
	}
	return "[" + strings.Join(text, ", ") + "]"
}

// MarshalJSON writes the same section as String.
func (p *Policy) MarshalJSON() ([]byte, error) {
	type list struct {
		Users  []uint32 `json:"users"`
		Groups []uint32 `json:"groups"`
	}
	type one struct {
		Campaign    list `json:"campaign"`
		HandOver    list `json:"hand-over"`
		MaxPriority int  `json:"max-priority"`
	}
	of := func(l ids) list {
		return list{append([]uint32{}, l.users...), append([]uint32{}, l.groups...)}
	}
	elections := map[string]one{}
	for name, r := range p.elections {
		elections[name] = one{of(r.campaign), of(r.handOver), r.maxPriority}
	}
	return json.Marshal(struct {
		Admin          list           `json:"admin"`
		MaxCandidacies int            `json:"max-candidacies"`
		Elections      map[string]one `json:"elections"`
	}{of(p.admin), p.maxCandidacies, elections})
}
