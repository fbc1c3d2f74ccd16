package simtest

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// What the hosts of a load send.
const (
	loadBytes = 2048          // of a datagram
	loadWire  = 2048 + 40     // bytes of its packet on the wire, headers and checksums counted
	loadKey   = ib.QKey(0x77) // Q_Key of every queue pair
	loadDepth = 64            // requests in a queue
)

// loadHost is a host that sends datagrams to others in turn.
type loadHost struct {
	port     place
	qp       *endpoint.QP
	every    time.Duration // between two requests
	to       []int         // hosts, in order
	posted   int
	sent     int
	received int
	sl       ib.SL
}

// load is all of them on a fabric as its manager left it.
type load struct {
	*world
	hosts  []*loadHost
	buffer []byte
	done   []endpoint.Completion
	bytes  [loadBytes]byte
	before fabric.DataCounts
	levels []ib.SL // of what was received, in order of polling
	// paths has the service levels of paths from host to host; nil: those of the hosts.
	paths func(from, to place) ib.SL
	// besides takes what else has arrived, of what is wanted, and counts it; nil: nothing is.
	besides func() int
	wanted  int
}

// level is the service level of datagrams from one host to another.
func (l *load) level(from, to *loadHost) ib.SL {
	if l.paths != nil {
		return l.paths(from.port, to.port)
	}
	return from.sl
}

// newLoad gives every host of a fabric a queue pair. Each sends at a share of the
// rate of its link, in percent.
func newLoad(w *world, percent int) *load {
	w.t.Helper()
	l := &load{
		world: w, buffer: make([]byte, loadBytes+endpoint.GRHSize), done: make([]endpoint.Completion, loadDepth),
		before: w.fabric.DataCounts(),
	}
	for _, n := range w.list.Nodes {
		if n.Type != ib.NodeCA || n.Ports[1].Peer == nil {
			continue
		}
		h := &loadHost{port: place{n.GUID, 1}, qp: l.newQP(n.GUID, 0)}
		wire := loadWire * fabric.PerThousand(w.info(h.port)) / 1000
		h.every = wire * 100 / time.Duration(percent)
		l.hosts = append(l.hosts, h)
	}
	return l
}

func (l *load) newQP(g ib.NodeGUID, index uint16) *endpoint.QP {
	l.t.Helper()
	d, err := l.fabric.Device(g)
	if err != nil {
		l.t.Fatal(err)
	}
	q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD, SendDepth: loadDepth, ReceiveDepth: 4 * loadDepth})
	for _, step := range []func() error{
		func() error { return err },
		func() error {
			return q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex|endpoint.AttrQKey, endpoint.Attr{Port: 1, PKeyIndex: index, QKey: loadKey})
		},
		func() error { return q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}) },
		func() error {
			return q.Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrSendPSN, endpoint.Attr{})
		},
	} {
		if err := step(); err != nil {
			l.t.Fatal(err)
		}
	}
	for range 4 * loadDepth {
		l.must(q.PostReceive(endpoint.ReceiveRequest{Buffer: l.buffer}))
	}
	return q
}

// poll takes what a host has completed, and makes room for as much again.
func (l *load) poll(h *loadHost) {
	for {
		n := h.qp.Poll(l.done)
		for _, c := range l.done[:n] {
			switch {
			case c.Status != endpoint.Success:
				l.t.Errorf("node %v: completion %v", h.port.node, c.Status)
			case c.ID == sendID:
				h.sent++
			default:
				h.received++
				l.levels = append(l.levels, c.SL)
				l.must(h.qp.PostReceive(endpoint.ReceiveRequest{Buffer: l.buffer}))
			}
		}
		if n < len(l.done) {
			return
		}
	}
}

// sendID marks requests to send.
const sendID = 1

// turn has a host send its next datagram. One whose queue is full waits for its
// next turn.
func (l *load) turn(h *loadHost) {
	if h.posted-h.sent >= loadDepth {
		l.poll(h)
	}
	if h.posted-h.sent < loadDepth {
		to := l.hosts[h.to[h.posted]]
		l.must(h.qp.PostSend(endpoint.SendRequest{
			ID: sendID, Data: l.bytes[:], RemoteQP: to.qp.Number(), RemoteQKey: loadKey,
			To: endpoint.Address{DLID: l.info(to.port).LID, SL: l.level(h, to)},
		}))
		h.posted++
	}
	if h.posted < len(h.to) {
		l.fabric.At(l.fabric.Now()+h.every, func() { l.turn(h) })
	}
}

// run lets all hosts send, until everything has ended somewhere, and tells how many
// arrived of how many, and in what time.
func (l *load) run() (arrived, posted int, took time.Duration) {
	l.t.Helper()
	start := l.fabric.Now()
	for i, h := range l.hosts {
		posted += len(h.to)
		if len(h.to) > 0 { // not all at the same instant
			l.fabric.At(start+h.every*time.Duration(i)/time.Duration(len(l.hosts)), func() { l.turn(h) })
		}
	}
	const pollEvery = 2 * loadDepth // events, at each of which one datagram arrives at most
	for sent := false; !(sent && l.fabric.DataInFlight() == 0) && l.fabric.Now() < start+limit; {
		for n := 0; n < pollEvery && !(sent && l.fabric.DataInFlight() == 0); n++ {
			l.fabric.Step()
		}
		sent = true
		for _, h := range l.hosts {
			l.poll(h)
			sent = sent && h.sent == len(h.to)
		}
	}
	for _, h := range l.hosts {
		l.poll(h)
		arrived += h.received
	}
	return arrived, posted, l.fabric.Now() - start
}

// drops are the ends of packets that did not arrive, by reason.
func (l *load) drops() (text []string) {
	for f, n := range l.fabric.DataCounts() {
		if n -= l.before[f]; n > 0 && (fabric.Outcome(f).IsDrop() || fabric.Outcome(f) == fabric.OutcomeRefused) {
			text = append(text, fmt.Sprintf("%d %s", n, fabric.Outcome(f)))
		}
	}
	return text
}

// allToAll has every host send rounds datagrams to each of peers others, who come
// after it in the order of the fabric, each host in its own order.
func (l *load) allToAll(peers, rounds int) {
	n := len(l.hosts)
	peers = min(peers, n-1)
	for i, h := range l.hosts {
		for range rounds {
			for k := range peers {
				h.to = append(h.to, (i+1+(k*(n-1))/peers)%n)
			}
		}
	}
}

// slow makes every link 8 Gb/s: a datagram takes 2 us, half of what a switch as
// made lets it live.
func slow(_ *topology.Node, c *sma.Config) {
	for i := range c.Ports {
		p := &c.Ports[i]
		p.LinkWidthSupported, p.LinkSpeedSupported, p.LinkSpeedExtSupported = smp.LinkWidth1X|smp.LinkWidth4X, smp.LinkSpeedSDR, 0
		p.LinkWidthEnabled, p.LinkSpeedEnabled = 0, 0
	}
}

// SI-38: on the fabric as its manager leaves it, with nothing set by hand, whatever hosts
// send arrives: all to all at 1, 50 and 100 % of their links, and everybody to one.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name, spec    string
		peers, rounds int
		soak          bool
	}{
		{"16 hosts", "fattree,radix=8,levels=2,hosts=16", 15, 20, false},
		{"648 hosts, each to 2", "fattree,radix=36,levels=2", 2, 1, false},
		{"648 hosts", "fattree,radix=36,levels=2", 647, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.soak && os.Getenv("IBWARDEN_SOAK") == "" {
				t.Skip("IBWARDEN_SOAK is not set")
			}
			w := bringUp(t, setup{
				list: generate(t, c.spec), policy: &policy.Policy{Default: policy.Full}, fabric: fabric.Config{Profile: slow, WireTime: true},
			})
			w.mum = true
			for _, percent := range []int{1, 50, 100} {
				l := newLoad(w, percent)
				l.allToAll(c.peers, c.rounds)
				l.end(fmt.Sprintf("%d %%, all to all", percent))
			}
			l := newLoad(w, 100)
			for _, h := range l.hosts[1:] {
				h.to = slices.Repeat([]int{0}, max(1, c.peers*c.rounds/4))
			}
			l.end("everybody to one")
		})
	}
}

// end runs a load and wants all of it to arrive.
func (l *load) end(what string) {
	l.t.Helper()
	arrived, posted, took := l.run()
	l.t.Logf("%s: %d of %d datagrams of %d bytes arrived in %v", what, arrived, posted, loadBytes, took)
	if arrived != posted || posted == 0 {
		l.t.Errorf("%s: %d of %d arrived; the others: %v", what, arrived, posted, l.drops())
	}
	for _, h := range l.hosts {
		h.qp.Destroy()
	}
}
