package attack

import (
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEveryAttackIsInTheDocumentationWithItsOptions(t *testing.T) {
	docs, err := os.ReadFile("../../docs/testbed.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		_, line, ok := strings.Cut(string(docs), "\n| `"+name+"` | ")
		line, _, _ = strings.Cut(line, "\n")
		if !ok || Does(name) == "" {
			t.Errorf("docs/testbed.md does not list the attack %s", name)
		}
		options := flag.NewFlagSet(name, flag.ContinueOnError)
		attacks()[name].run(options)
		options.VisitAll(func(f *flag.Flag) {
			if !strings.Contains(line, "`"+f.Name+"`") {
				t.Errorf("docs/testbed.md does not tell the option %s of the attack %s", f.Name, name)
			}
		})
	}
}

func TestAnOrderThatMakesNoSenseIsRefused(t *testing.T) {
	target := []Target{{}}
	for name, o := range map[string]Order{
		"unknown attack": {Attack: "asking-nicely", Targets: target},
		"no target":      {Attack: "idle"},
		"unknown option": {Attack: "idle", Targets: target, Options: map[string]string{"politely": "yes"}},
		"not a number":   {Attack: "idle", Targets: target, Options: map[string]string{"connections": "many"}},
	} {
		if err := o.Check(); err == nil {
			t.Errorf("%s: %+v is taken", name, o)
		}
	}
}

func TestAnOrderIsCarriedOutUntilItsTimeIsOver(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nobody-listens")
	o := Order{Attack: "idle", Targets: []Target{{Socket: socket}}, For: 20 * time.Millisecond,
		Options: map[string]string{"port": "socket", "connections": "2"}}
	order, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if did, err := Run(t.Context(), string(order)); err != nil || did != "opened 0 connections, at most 0 at once" {
		t.Errorf("%q, %v", did, err)
	}
	if did, err := Run(t.Context(), "{"); err == nil {
		t.Errorf("half an order is carried out: %s", did)
	}
}

func TestReplayTakesWhatGossipSays(t *testing.T) {
	packet := []byte{0x45, 0, 0, 33, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2,
		0x1f, 0x0a, 0x80, 0, 0, 13, 0, 0, 'a', 'l', 'i', 'v', 'e'}
	if payload, ok := datagram(packet, 7946); !ok || string(payload) != "alive" {
		t.Errorf("got %q, %v", payload, ok)
	}
	for n := range packet {
		if _, ok := datagram(packet[:n], 7946); ok {
			t.Errorf("%d bytes of it are taken", n)
		}
	}
	if _, ok := datagram(packet, 7947); ok {
		t.Error("another port's packet is taken")
	}
}

func TestLoopbackSourcesDiffer(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for i := range 1000 {
		seen[loopbackSource(i)] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 addresses differ", len(seen))
	}
}
