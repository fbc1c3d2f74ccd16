package takeovertest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	pairDepth       = 1024
	connectionDepth = 64
	// ackTimeout is the code of 67 ms: whoever loses a packet is not kept waiting for it.
	ackTimeout = 14
)

// begin makes the queue pairs of all hosts and begins to send. Keys and then are what each
// host is a member of when OpenSM manages and when ibwarden does, by the meaning of the policy.
func (r *rig) begin(keys, then map[string][]ib.PKey) {
	r.Helper()
	r.do(func(f *fabric.Fabric) {
		t := r.traffic
		for _, h := range hosts(r.topology) {
			d, err := f.Device(h.GUID)
			if err != nil {
				r.Fatal(err)
			}
			s := &station{node: h, device: d, lid: f.Agent(h.GUID).Port(1).LID, keys: keys[h.ID], then: then[h.ID]}
			s.rooms = make([][]byte, pairDepth)
			for i := range s.rooms {
				s.rooms[i] = make([]byte, endpoint.GRHSize+words)
			}
			for len(s.then) < len(s.keys) {
				s.then = append(s.then, 0)
			}
			for i, k := range s.keys {
				var q *endpoint.QP
				if k.IsValid() {
					q = r.pair(s, i)
				}
				s.pairs = append(s.pairs, q)
			}
			t.stations = append(t.stations, s)
		}
		for _, from := range t.stations {
			for _, to := range t.stations {
				if from != to {
					t.flows = append(t.flows, between(from, to)...)
				}
			}
		}
		rng := rand.New(rand.NewPCG(need.Seed(r, 1), 0))
		rng.Shuffle(len(t.flows), func(i, j int) { t.flows[i], t.flows[j] = t.flows[j], t.flows[i] })
		for i, from := range t.stations {
			to := t.stations[(i+1)%len(t.stations)]
			for i, k := range from.keys {
				if j := slices.Index(to.keys, k); k.IsFull() && j >= 0 && from.then[i] == k && to.then[j] == k {
					r.connect(from, to, i, j)
					break
				}
			}
		}
		t.lastAt, t.running = time.Now(), true
	})
}

// between are the flows from one host to another: each key of the one to each of the other,
// and what the one would send with keys that it never has.
func between(from, to *station) (out []*flow) {
	for j, there := range to.keys {
		if !there.IsValid() {
			continue
		}
		has := false
		for i, key := range from.keys {
			has = has || key.Base() == there.Base() || from.then[i].IsValid() && from.then[i].Base() == to.then[j].Base()
			if key.IsValid() {
				out = append(out, &flow{kind: kindOf([2]ib.PKey{key, from.then[i]}, [2]ib.PKey{there, to.then[j]}), from: from, to: to, pair: from.pairs[i], dest: to.pairs[j], key: key})
			}
		}
		if !has {
			out = append(out, &flow{kind: forged, from: from, to: to, dest: to.pairs[j], key: there.Base().Full()})
		}
	}
	return out
}

// kindOf is what becomes of packets with a key for a queue pair of another, each under OpenSM
// and under ibwarden: they are of one partition, and one of the two is a full member.
func kindOf(key, there [2]ib.PKey) kind {
	var pass [2]bool
	for i := range pass {
		pass[i] = key[i].IsValid() && there[i].IsValid() && key[i].Base() == there[i].Base() && (key[i].IsFull() || there[i].IsFull())
	}
	switch {
	case pass[0] != pass[1]:
		return changing
	case !pass[0]:
		return never
	case key[0].IsFull() && key[1].IsFull():
		return allowed
	}
	return limited
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// pair makes a queue pair that sends and receives datagrams with a key of its host.
func (r *rig) pair(s *station, index int) *endpoint.QP {
	r.Helper()
	q, err := s.device.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD, SendDepth: pairDepth, ReceiveDepth: pairDepth})
	r.must(err)
	r.must(q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex|endpoint.AttrQKey,
		endpoint.Attr{Port: 1, PKeyIndex: uint16(index), QKey: qkey}))
	r.must(q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}))
	r.must(q.Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrSendPSN, endpoint.Attr{}))
	for i := range s.rooms {
		r.must(q.PostReceive(endpoint.ReceiveRequest{ID: uint64(i), Buffer: s.rooms[i]}))
	}
	return q
}

// connect makes a reliable connection from one host to another.
func (r *rig) connect(from, to *station, i, j int) {
	r.Helper()
	var q [2]*endpoint.QP
	index := [2]int{i, j}
	for i, s := range []*station{from, to} {
		var err error
		q[i], err = s.device.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.RC, SendDepth: connectionDepth, ReceiveDepth: connectionDepth})
		r.must(err)
		r.must(q[i].Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex,
			endpoint.Attr{Port: 1, PKeyIndex: uint16(index[i])}))
		for range connectionDepth {
			r.must(q[i].PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, words)}))
		}
	}
	for i, far := range []*station{to, from} {
		r.must(q[i].Modify(endpoint.Kernel, endpoint.StateRTR, endpoint.AttrPath|endpoint.AttrPathMTU|endpoint.AttrRemote|endpoint.AttrReceivePSN|endpoint.AttrMinRNRTimer,
			endpoint.Attr{Path: endpoint.Address{DLID: far.lid}, PathMTU: ib.MTU256, Remote: uint32(q[1-i].Number()), MinRNRTimer: 1}))
		r.must(q[i].Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrSendPSN|endpoint.AttrTimeout|endpoint.AttrRetryCount|endpoint.AttrRNRRetryCount,
			endpoint.Attr{Timeout: ackTimeout, RNRRetryCount: 7}))
	}
	r.traffic.links = append(r.traffic.links, &connection{from: from, to: to, send: q[0], receive: q[1]})
}

// enter begins a stage, in which ibwarden manages or does not. What is lost of limited
// members counts if it was sent and lost in one stage.
func (r *rig) enter(stage string, wardened bool) {
	r.Helper()
	r.do(func(*fabric.Fabric) { r.traffic.stage, r.traffic.wardened = stage, wardened })
}
