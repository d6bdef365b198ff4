package access

import (
	"errors"
	"os/user"
	"strings"
	"testing"
)

func resolve(t *testing.T, c Config, owner Owner) *Policy {
	t.Helper()
	p, err := Resolve(c, owner)
	if err != nil {
		t.Fatal(err)
	}
	p.foreignUIDs, p.foreignGIDs = false, false // the result must not depend on the test's namespace
	return p
}

// database replaces the system's database of groups. It knows one user.
func database(uid uint32) ([]string, error) {
	if uid == 1002 {
		return []string{"5", "500"}, nil
	}
	return nil, errors.New("unknown user")
}

func TestWithoutASectionTheGroupMayCampaignAndHandOver(t *testing.T) {
	p := resolve(t, Config{}, Owner{UID: 1000, GID: 500, Groups: database})
	for _, c := range []struct {
		name         string
		who          Who
		group, admin bool
	}{
		{"root", Who{}, true, true},
		{"the agent's user", Who{UID: 1000, GID: 1}, true, true},
		{"its group", Who{UID: 1001, GID: 500}, true, false},
		{"its group, by membership", Who{UID: 1002, GID: 5}, true, false},
		{"its group, as the kernel says", Who{UID: 1003, GID: 5, Groups: []uint32{7, 500}, AllGroups: true}, true, false},
		{"its group, by membership, but the process has it not", Who{UID: 1002, GID: 5, Groups: []uint32{5}, AllGroups: true}, false, false},
		{"its group, by membership, where the kernel knows not all", Who{UID: 1002, GID: 5, Groups: []uint32{5}}, true, false},
		{"anybody else", Who{UID: 1003, GID: 5}, false, false},
	} {
		for right, may := range map[Right]bool{Campaign: c.group, HandOver: c.group, Admin: c.admin} {
			err := p.May(c.who, right, "payments")
			if (err == nil) != may {
				t.Errorf("%s, %s: %v", c.name, right, err)
			}
			if err != nil && (!strings.Contains(err.Error(), `"`+string(right)+`"`) || !strings.Contains(err.Error(), "`access.")) {
				t.Errorf("%q does not say which right is missing and what gives it", err)
			}
		}
	}
}

func TestASectionGivesWhatItSaysAndNothingElse(t *testing.T) {
	highest := 200
	p := resolve(t, Config{
		Admin: &List{Groups: []string{"4005"}},
		Elections: map[string]Rules{
			"payments": {Campaign: &List{Users: []string{"2001"}}, MaxPriority: &highest},
			"reports":  {Campaign: &List{}},
			Rest:       {Campaign: &List{Groups: []string{"500"}}, HandOver: &List{Users: []string{"2002"}}},
		},
	}, Owner{UID: 1000, GID: 500})
	of := func(uid, gid uint32) Who { return Who{UID: uid, GID: gid, AllGroups: true} }
	for _, c := range []struct {
		name     string
		who      Who
		election string
		may      string // the rights
	}{
		{"root", of(0, 0), "payments", "campaign hand-over admin"},
		{"the agent's user", of(1000, 7), "payments", "campaign hand-over admin"},
		{"an administrator", of(3000, 4005), "payments", "campaign hand-over admin"},
		{"whom the election names", of(2001, 7), "payments", "campaign"},
		{"the same one elsewhere", of(2001, 7), "other", ""},
		{"the group of the rest", of(3000, 500), "payments", ""},
		{"the group of the rest", of(3000, 500), "other", "campaign"},
		{"what the election does not say is as for the rest", of(2002, 7), "payments", "hand-over"},
		{"an election that names nobody", of(3000, 500), "reports", ""},
	} {
		for _, right := range []Right{Campaign, HandOver, Admin} {
			want := strings.Contains(c.may, string(right))
			if err := p.May(c.who, right, c.election); (err == nil) != want {
				t.Errorf("%s, %s of %s: %v", c.name, right, c.election, err)
			}
		}
	}
	for _, c := range []struct {
		who      Who
		election string
		highest  int
		bounded  bool
	}{{of(2001, 7), "payments", 200, true}, {of(3000, 500), "other", 1_000_000, true}, {of(0, 0), "payments", 0, false}, {of(3000, 4005), "payments", 0, false}} {
		if highest, bounded := p.MaxPriority(c.who, c.election); highest != c.highest || bounded != c.bounded {
			t.Errorf("%v in %s: at most %d, %t", c.who, c.election, highest, bounded)
		}
	}
}

// A user namespace gives the same number to all users that have none in it.
func TestStrangersOfAnotherUserNamespaceMatchNobody(t *testing.T) {
	for _, owner := range []Owner{{UID: overflowID, GID: 500}, {UID: 1000, GID: overflowID}} {
		p := resolve(t, Config{}, owner)
		who := Who{UID: overflowID, GID: overflowID, Groups: []uint32{overflowID}}
		if err := p.May(who, Campaign, "x"); err != nil {
			t.Errorf("where everybody has a number, it is that user's: %v", err)
		}
		p.foreignUIDs, p.foreignGIDs = true, true
		for _, right := range []Right{Campaign, HandOver, Admin} {
			if p.May(who, right, "x") == nil {
				t.Errorf("a stranger has the right %s of %+v", right, owner)
			}
		}
		if p.Own(overflowID) {
			t.Error("a stranger is taken for the agent's user")
		}
	}
}

// The advice in a refusal names the election's own rules, so it gives no right in another election. It warns
// if the new list replaces that of "*", since those on the old list would lose the right.
func TestARefusalNamesTheElectionsOwnRules(t *testing.T) {
	some := &List{Users: []string{"77"}}
	p := resolve(t, Config{Elections: map[string]Rules{"own": {Campaign: some}, "both": {HandOver: &List{}}, Rest: {HandOver: some}}}, Owner{UID: 1000, GID: 500})
	for _, c := range []struct {
		election string
		right    Right
		replaces bool
	}{
		{"own", Campaign, false},
		{"own", HandOver, true},
		{"other", Campaign, false}, // "*" gives it to nobody
		{"other", HandOver, true},
		{"both", HandOver, false},
	} {
		err := p.May(Who{UID: 78}, c.right, c.election)
		if err == nil || !strings.Contains(err.Error(), "access.elections."+c.election+"."+string(c.right)) ||
			strings.Contains(err.Error(), "in "+c.election+` that list replaces the one of "*", so repeat there`) != c.replaces {
			t.Errorf("%s of %s: %v", c.right, c.election, err)
		}
	}
	err := resolve(t, Config{}, Owner{UID: 1000, GID: 500}).May(Who{UID: 78}, Campaign, "other")
	if err == nil || !strings.Contains(err.Error(), "with access.elections only what it gives applies, in every election") {
		t.Errorf("without the section: %v", err)
	}
}

func TestNamesAreLookedUpAtTheStart(t *testing.T) {
	root, err := user.LookupId("0")
	if err != nil {
		t.Skip("this system's database knows no root; CI's does")
	}
	p := resolve(t, Config{Admin: &List{Users: []string{root.Username, "77"}}}, Owner{UID: 1000, GID: 500})
	if want := "admin: {users: [0, 77], groups: []}"; !strings.Contains(p.String(), want) {
		t.Errorf("%s holds no %s", p, want)
	}
	few, many := -1, 1_000_001
	for want, c := range map[string]Config{
		`access.admin: user "no-such-user" does not exist`:          {Admin: &List{Users: []string{"no-such-user"}}},
		`access.admin: group "no-such-group" does not exist`:        {Admin: &List{Groups: []string{"no-such-group"}}},
		`access.admin: user "4294967295" does not exist`:            {Admin: &List{Users: []string{"4294967295"}}},
		`access.elections."*".campaign: user "x y" does not exist`:  {Elections: map[string]Rules{Rest: {Campaign: &List{Users: []string{"x y"}}}}},
		`access.elections.pay.hand-over: group "-1" does not exist`: {Elections: map[string]Rules{"pay": {HandOver: &List{Groups: []string{"-1"}}}}},
		`access.elections.PAY: "PAY" is not a valid election name`:  {Elections: map[string]Rules{"PAY": {}}},
		`access.elections.pay.max-priority: -1 is not between`:      {Elections: map[string]Rules{"pay": {Campaign: &List{}, MaxPriority: &few}}},
		`access.elections.pay.max-priority: 1000001 is not between`: {Elections: map[string]Rules{"pay": {Campaign: &List{}, MaxPriority: &many}}},
		`access.elections.pay.max-priority: has no effect`:          {Elections: map[string]Rules{"pay": {MaxPriority: new(int)}}},
		`access.max-candidacies: -1 is not a valid number`:          {MaxCandidacies: -1},
	} {
		_, err := Resolve(c, Owner{})
		if bad, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(bad.Error(), want) || bad.Hint == "" {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
