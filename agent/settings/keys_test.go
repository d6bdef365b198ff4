package settings

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/testbed/golden"
)

// ring plays gossip.
type ring struct {
	keys [][]byte
	err  error
}

func (r *ring) Keys() [][]byte { return slices.Clone(r.keys) }
func (r *ring) SetKeys(keys [][]byte) error {
	if r.err == nil {
		r.keys = keys
	}
	return r.err
}

func clusterKey(c byte) []byte { return bytes.Repeat([]byte{c}, 32) }

func encoded(keys ...[]byte) string {
	var lines strings.Builder
	for _, k := range keys {
		lines.WriteString(base64.StdEncoding.EncodeToString(k) + "\n")
	}
	return lines.String()
}

func newKeyring(t *testing.T, keys ...[]byte) (*Keyring, *ring) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(encoded(keys...)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &ring{keys: keys}
	return &Keyring{path: path, gossip: r, logger: slog.New(slog.DiscardHandler)}, r
}

// An agent makes itself a random key if no other agent is to join it.
func TestOnlyAnAgentThatIsToMeetNobodyMakesItselfAKey(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		own    bool
	}{
		"told nothing":     {Config{Name: "a"}, true},
		"alone with votes": {Config{Name: "a", Voters: []string{"a"}}, true},
		"to join another":  {Config{Name: "a", Join: []string{"127.0.0.1:1"}}, false},
		"another votes":    {Config{Name: "a", Voters: []string{"a", "b"}}, false},
	} {
		keys, err := GossipKeys(test.config, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		again, err := GossipKeys(test.config, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if test.own != (len(keys) == 1 && len(keys[0]) == keySize) || !test.own && len(keys) > 0 {
			t.Errorf("%s: %d keys, want one of its own: %v", name, len(keys), test.own)
		} else if test.own && bytes.Equal(keys[0], again[0]) {
			t.Errorf("%s: two agents make the same key", name)
		}
	}
}

func TestARotationIsInTheKeyFileAtEveryStep(t *testing.T) {
	older, newer := clusterKey('o'), clusterKey('n')
	k, gossip := newKeyring(t, older)
	link := filepath.Join(t.TempDir(), "link") // configuration managers make such links
	if err := os.Symlink(k.path, link); err != nil {
		t.Fatal(err)
	}
	k.path = link
	for _, step := range []struct {
		request api.KeysRequest
		want    [][]byte
	}{
		{api.KeysRequest{Add: strings.TrimSpace(encoded(newer))}, [][]byte{older, newer}},
		{api.KeysRequest{Add: strings.TrimSpace(encoded(newer))}, [][]byte{older, newer}}, // the key is there already
		{api.KeysRequest{Use: fingerprint(newer)}, [][]byte{newer, older}},
		{api.KeysRequest{Use: fingerprint(newer)}, [][]byte{newer, older}},
		{api.KeysRequest{Remove: fingerprint(older)}, [][]byte{newer}},
	} {
		if refused := k.ChangeKeys(step.request); refused != nil {
			t.Fatalf("%+v: %v", step.request, refused)
		}
		kept, bad := ReadKeys(link)
		if bad != nil {
			t.Fatal(bad)
		}
		for what, got := range map[string][][]byte{"in force": gossip.keys, "kept": kept} {
			if !slices.EqualFunc(got, step.want, bytes.Equal) {
				t.Errorf("after %+v, %s are %q, want %q", step.request, what, got, step.want)
			}
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is no link any more: %v %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(k.path), ".doyen-key-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	list := k.Keys()
	if len(list) != 1 || !list[0].InUse || list[0].Fingerprint != fingerprint(newer) || len(list[0].Fingerprint) != 16 {
		t.Errorf("the list is %+v", list)
	}
}

func TestAKeyChangeThatCannotBeKeptIsNotMade(t *testing.T) {
	one, two, three := clusterKey('1'), clusterKey('2'), clusterKey('3')
	many := [][]byte{}
	for c := range byte(maxKeys) {
		many = append(many, clusterKey('a'+c))
	}
	for name, c := range map[string]struct {
		held    [][]byte
		request api.KeysRequest
		spoil   func(*Keyring, *ring)
		code    string
		text    string
	}{
		"nothing asked":    {[][]byte{one}, api.KeysRequest{}, nil, api.CodeBadRequest, "name one key"},
		"two things asked": {[][]byte{one, two}, api.KeysRequest{Use: fingerprint(two), Remove: fingerprint(one)}, nil, api.CodeBadRequest, "name one key"},
		"no key":           {[][]byte{one}, api.KeysRequest{Add: "hello"}, nil, api.CodeBadRequest, "not valid base64"},
		"a short key":      {[][]byte{one}, api.KeysRequest{Add: "aGVsbG8="}, nil, api.CodeBadRequest, "5 bytes"},
		"too many":         {many, api.KeysRequest{Add: strings.TrimSpace(encoded(one))}, nil, api.CodeBadRequest, "8 keys already"},
		"unknown":          {[][]byte{one}, api.KeysRequest{Use: fingerprint(two)}, nil, api.CodeNotFound, "no key has"},
		"in use":           {[][]byte{one, two}, api.KeysRequest{Remove: fingerprint(one)}, nil, api.CodeInUse, "in use"},
		"no key file":      {[][]byte{one}, api.KeysRequest{Add: "x"}, func(k *Keyring, _ *ring) { k.path = "" }, api.CodeBadRequest, "--key-file"},
		"edited by hand": {[][]byte{one, two}, api.KeysRequest{Use: fingerprint(two)}, func(k *Keyring, _ *ring) {
			_ = os.WriteFile(k.path, []byte(encoded(three)), 0o600)
		}, api.CodeUnavailable, "edited since it was read"},
		"gone": {[][]byte{one, two}, api.KeysRequest{Use: fingerprint(two)}, func(k *Keyring, _ *ring) { _ = os.Remove(k.path) }, api.CodeUnavailable, "nothing was changed"},
		"gossip refuses": {[][]byte{one, two}, api.KeysRequest{Use: fingerprint(two)}, func(_ *Keyring, r *ring) {
			r.err = errors.New("no")
		}, api.CodeUnavailable, "at the next start"},
	} {
		t.Run(name, func(t *testing.T) {
			k, gossip := newKeyring(t, c.held...)
			if c.spoil != nil {
				c.spoil(k, gossip)
			}
			refused := k.ChangeKeys(c.request)
			if refused == nil || refused.Code != c.code || !strings.Contains(refused.Message, c.text) {
				t.Errorf("refused %+v, want %s with %q", refused, c.code, c.text)
			}
			if !slices.EqualFunc(gossip.keys, c.held, bytes.Equal) {
				t.Errorf("the keys are %q", gossip.keys)
			}
		})
	}
}

func TestAKeyFileHoldsOneToEightKeys(t *testing.T) {
	one, two := clusterKey('1'), clusterKey('2')
	var nine [][]byte
	for c := range byte(9) {
		nine = append(nine, clusterKey(c))
	}
	for name, c := range map[string]struct {
		text string
		keys [][]byte
		bad  string
	}{
		"one":                {encoded(one), [][]byte{one}, ""},
		"without a line end": {strings.TrimSpace(encoded(one)), [][]byte{one}, ""},
		"two, and space":     {"\n " + encoded(two, one) + "\r\n", [][]byte{two, one}, ""},
		"one, twice":         {encoded(one, two, one), [][]byte{one, two}, ""},
		"none":               {"\n\n", nil, "has no key"},
		"nine":               {encoded(nine...), nil, "more than 8"},
		"a bad second":       {encoded(one) + "hello\n", nil, "not valid base64"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, bad := ReadKeys(path)
		if c.bad != "" {
			if bad == nil || !strings.Contains(bad.Problem, c.bad) {
				t.Errorf("%s: %v, want %q", name, bad, c.bad)
			}
			continue
		}
		if bad != nil || !slices.EqualFunc(keys, c.keys, bytes.Equal) {
			t.Errorf("%s: %q, %v", name, keys, bad)
		}
	}
}

// With a new key, the agent of a second host could not join the first. If the agent may not read the file, the
// right key may be in it.
func TestAKeyFileThatCanNotBeReadIsNotReplacedByANewKey(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "junk"), []byte("junk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "copy the cluster's key file here, mode 0600; only on the first host make one",
		dir:                        "copy the file of an agent that works",
		filepath.Join(dir, "junk"): "copy the file of an agent that works",
	} {
		if _, bad := ReadKeys(path); bad == nil || !strings.Contains(bad.Hint, want) {
			t.Errorf("%s: %v, want %q", path, bad, want)
		}
	}
	denied := fmt.Errorf("open: %w", fs.ErrPermission)
	if hint := keyFileHint(denied); !strings.Contains(hint, "readable for the agent's user") || strings.Contains(hint, "keygen") {
		t.Errorf("where reading is not allowed: %q", hint)
	}
}

// The next versions must read the key files of this one.
func TestTheKeyFileIsWhatItWas(t *testing.T) {
	k, _ := newKeyring(t, clusterKey(1))
	if err := k.keep([][]byte{clusterKey(1)}, [][]byte{clusterKey(2), clusterKey(1)}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(k.path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "keys.golden", string(text))
}
