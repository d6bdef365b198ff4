package netns

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/internal/base/each"
)

const (
	mtu = 1500
	// maxWaiting bounds the packets that wait in the switch, of all lanes together. They have
	// 48 MiB at most.
	maxWaiting = 32 << 10
)

// fabric is the switch: a port for each host and a lane for each ordered pair.
type fabric struct {
	ports   []io.ReadWriteCloser
	carrier []atomic.Bool
	lanes   [][]*lane
	index   map[netip.Addr]int
	readers sync.WaitGroup

	mu      sync.Mutex
	waiting []delivery // in the order of their instants
	alarm   *alarm.Alarm
	closed  chan struct{}
}

// delivery is a packet that waits for its time.
type delivery struct {
	at     time.Duration
	to     int
	lane   *lane
	packet []byte
}

// newFabric makes a switch that carries nothing until run is called. Closing it closes the
// ports.
func newFabric(ports []io.ReadWriteCloser, addrs []netip.Addr, seed uint64) (*fabric, error) {
	a, err := alarm.New()
	if err != nil {
		return nil, err
	}
	f := &fabric{ports: ports, carrier: make([]atomic.Bool, len(ports)), index: map[netip.Addr]int{}, alarm: a, closed: make(chan struct{})}
	for i := range ports {
		f.carrier[i].Store(true)
		f.index[addrs[i]] = i
		row := make([]*lane, len(ports))
		for j := range row {
			row[j] = &lane{rng: rand.New(rand.NewPCG(seed, uint64(i)<<32|uint64(j)))}
		}
		f.lanes = append(f.lanes, row)
	}
	return f, nil
}

func (f *fabric) run() {
	f.readers.Add(len(f.ports) + 1)
	for i := range f.ports {
		go f.read(i)
	}
	go f.deliver()
}

// close ends the switch. Packets that wait are lost.
func (f *fabric) close() error {
	close(f.closed)
	errs := each.Of(f.ports, io.ReadWriteCloser.Close)
	f.readers.Wait()
	f.alarm.Close()
	return errors.Join(errs...)
}

func (f *fabric) read(from int) {
	defer f.readers.Done()
	packet := make([]byte, mtu+64)
	for {
		n, err := f.ports[from].Read(packet)
		if err != nil {
			return
		}
		if to, ok := f.destination(packet[:n]); ok {
			f.pass(from, to, packet[:n])
		}
	}
}

func (f *fabric) destination(packet []byte) (int, bool) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return 0, false
	}
	to, ok := f.index[netip.AddrFrom4([4]byte(packet[16:20]))]
	return to, ok
}

// pass decides what becomes of a packet, and delivers its copies now or later.
func (f *fabric) pass(from, to int, packet []byte) {
	if !f.carrier[from].Load() {
		return
	}
	l, now := f.lanes[from][to], now()
	fate := l.judge(now, packet)
	for _, at := range fate.at[:fate.n] {
		if at <= now {
			f.hand(to, packet)
		} else {
			f.keep(delivery{at: at, to: to, lane: l, packet: append([]byte(nil), packet...)})
		}
	}
}

// hand delivers a packet to a host. If the host's interface is down, the packet is lost.
func (f *fabric) hand(to int, packet []byte) {
	if f.carrier[to].Load() {
		_, _ = f.ports[to].Write(packet)
	}
}

func (f *fabric) keep(d delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) >= maxWaiting {
		d.lane.arrived() // the switch is full: the copy is lost, and leaves the queue
		return
	}
	i, _ := slices.BinarySearchFunc(f.waiting, d.at, func(other delivery, at time.Duration) int {
		if other.at <= at {
			return -1 // equal instants keep their order
		}
		return 1
	})
	f.waiting = slices.Insert(f.waiting, i, d)
	if i == 0 {
		f.alarm.Set(int64(d.at))
	}
}

// deliver delivers packets that have waited long enough, until the switch is closed.
func (f *fabric) deliver() {
	defer f.readers.Done()
	for {
		select {
		case <-f.alarm.C:
		case <-f.closed:
			return
		}
		for d, ok := f.due(); ok; d, ok = f.due() {
			if d.lane.arrived() {
				f.hand(d.to, d.packet)
			}
		}
	}
}

// due removes and returns the first packet whose time has come. If no packet is due yet, due sets
// the alarm for the first.
func (f *fabric) due() (delivery, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		return delivery{}, false
	}
	next := f.waiting[0]
	if next.at > now() {
		f.alarm.Set(int64(next.at))
		return delivery{}, false
	}
	f.waiting[0] = delivery{} // frees the packet
	f.waiting = f.waiting[1:]
	return next, true
}

func now() time.Duration { return time.Duration(alarm.Now()) }
