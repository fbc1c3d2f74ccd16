package endpoint_test

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// talks sends a datagram from a UD QP with one key to one with another, and
// reports whether it arrived, and what became of it.
func talks(t *testing.T, sender, receiver ib.PKey) (bool, arrival, *node) {
	t.Helper()
	n := newNet(t)
	// Both are bound to a good entry; the keys that are to be tried come after.
	a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
	from, to := a.ud(1, 0), b.ud(1, 0)
	a.ports[0].keys[0], b.ports[0].keys[0] = sender, receiver
	room(t, 1, to)
	must(t, from.PostSend(datagram(b.ports[0], to, "hello")))
	n.carry()
	if got := n.sent[0].BTH.PKey(); got != sender {
		t.Errorf("packet left with %v, want %v", got, sender)
	}
	return len(received(to)) == 1, n.last(), b
}

func TestPKeyMatch(t *testing.T) {
	for _, tt := range []struct {
		rule             string
		sender, receiver ib.PKey
		want             endpoint.Reason
	}{
		{"PK-06/one partition", 0x8001, 0x0001, endpoint.Taken},
		{"PK-06/two partitions", 0x8001, 0x8002, endpoint.ReasonPKeyBase},
		{"PK-06/all bits count", 0xC001, 0x8001, endpoint.ReasonPKeyBase},
		{"PK-07", 0x0001, 0x0001, endpoint.ReasonMembership},
		{"PK-08", 0x8001, 0x8001, endpoint.Taken},
		{"PK-09", 0x0001, 0x0001, endpoint.ReasonMembership},
		{"PK-10", 0x0001, 0x8001, endpoint.Taken},
		{"PK-11", 0x8001, 0x0001, endpoint.Taken},
		{"PK-12", 0x8001, 0x8001, endpoint.Taken},
		{"PK-13", 0x8001, 0x8003, endpoint.ReasonPKeyBase},
		{"PK-21", 0xFFFF, 0xFFFF, endpoint.Taken},
		{"PK-22/limited both", 0x7FFF, 0x7FFF, endpoint.ReasonMembership},
		{"PK-22/with a full one", 0x7FFF, 0xFFFF, endpoint.Taken},
		{"PK-23/0x0000", 0x0000, 0x0000, endpoint.ReasonPKeyBase},
		{"PK-23/0x8000", 0x8000, 0x8000, endpoint.ReasonPKeyBase},
		{"PK-23/both empty", 0x8000, 0x0000, endpoint.ReasonPKeyBase},
		{"QP-22", 0x8001, 0x8002, endpoint.ReasonPKeyBase},
		{"QP-22/zero", 0x8000, 0x8000, endpoint.ReasonPKeyBase},
		{"QP-23/both limited", 0x0001, 0x0001, endpoint.ReasonMembership},
		{"QP-23/one full", 0x0001, 0x8001, endpoint.Taken},
		{"QP-24", 0x0001, 0x0002, endpoint.ReasonPKeyBase},
		{"QP-25", 0x8001, 0x8001, endpoint.Taken},
		{"QP-25/limited to full", 0x0001, 0x8001, endpoint.Taken},
		{"QP-25/full to limited", 0x8001, 0x0001, endpoint.Taken},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			arrived, last, b := talks(t, tt.sender, tt.receiver)
			if last.reason != tt.want || arrived != (tt.want == endpoint.Taken) {
				t.Errorf("%v to %v: %v, arrived %v; want %v", tt.sender, tt.receiver, last.reason, arrived, tt.want)
			}
			bad := uint32(0)
			if tt.want != endpoint.Taken {
				bad = 1
			}
			wantCounters(t, b, bad, 0)
		})
	}
}

// TestPKeyMatchByBits walks all pairs of a few bases and both memberships, with
// what the texts say written out again.
func TestPKeyMatchByBits(t *testing.T) {
	keys := []ib.PKey{0, 1, 2, 0x1234, 0x4000, 0x7FFE, 0x7FFF}
	for _, low := range keys {
		keys = append(keys, low+0x8000)
	}
	for _, s := range keys {
		for _, r := range keys {
			same := s%0x8000 == r%0x8000 && s%0x8000 > 0
			full := s >= 0x8000 || r >= 0x8000
			if got, _, _ := talks(t, s, r); got != (same && full) {
				t.Errorf("%v to %v: arrived %v, want %v", s, r, got, same && full)
			}
		}
	}
}

// TestGuideExampleFourQPs is the example of the guide: A may talk with B and with
// C, B and C may not talk with each other, and D with nobody.
func TestGuideExampleFourQPs(t *testing.T) {
	keys := map[string]ib.PKey{"A": 0x8001, "B": 0x0001, "C": 0x0001, "D": 0x8002}
	rules := map[string]string{
		"AB": "PK-14", "BA": "PK-14", "AC": "PK-15", "CA": "PK-15", "BC": "PK-16", "CB": "PK-16",
		"AD": "PK-17", "BD": "PK-17", "CD": "PK-17", "DA": "PK-17", "DB": "PK-17", "DC": "PK-17",
	}
	may := map[string]bool{"AB": true, "BA": true, "AC": true, "CA": true}
	names := []string{"A", "B", "C", "D"}
	n := newNet(t)
	nodes, qps := map[string]*node{}, map[string]*endpoint.QP{}
	for i, name := range names {
		nodes[name] = n.node(counters, newPort(ib.LID(i+1), 0xFFFF, keys[name]))
		qps[name] = nodes[name].ud(1, 1)
		room(t, 8, qps[name])
	}
	for _, from := range names {
		for _, to := range names {
			if from == to {
				continue
			}
			t.Run(rules[from+to]+"/"+from+" to "+to, func(t *testing.T) {
				must(t, qps[from].PostSend(datagram(nodes[to].ports[0], qps[to], from)))
				n.carry()
				if got := len(received(qps[to])) == 1; got != may[from+to] {
					t.Errorf("arrived: %v, want %v", got, may[from+to])
				}
			})
		}
	}
}

func TestPKeyTables(t *testing.T) {
	t.Run("PK-18", func(t *testing.T) {
		n := newNet(t)
		a := n.node(counters, newPort(1, 0xFFFF, 0, 0, 0x8005))
		b := n.node(counters, newPort(2, 0xFFFF, 0, 0, 0, 0, 0, 0, 0x8005))
		from, to := a.ud(1, 3), b.ud(1, 7)
		room(t, 1, to, from)
		must(t, from.PostSend(datagram(b.ports[0], to, "3 to 7")))
		must(t, to.PostSend(datagram(a.ports[0], from, "7 to 3")))
		n.carry()
		if len(received(to)) != 1 || len(received(from)) != 1 {
			t.Error("the same key at two indexes does not pass")
		}
	})
	t.Run("PK-02", func(t *testing.T) {
		n := newNet(t)
		keys := []ib.PKey{0x8001, 0x8002, 0x8003}
		a := n.node(counters, newPort(1, keys...))
		var hub, peers []*endpoint.QP
		var nodes []*node
		for i, key := range keys {
			nodes = append(nodes, n.node(counters, newPort(ib.LID(10+i), key)))
			hub, peers = append(hub, a.ud(1, uint16(i))), append(peers, nodes[i].ud(1, 0))
			room(t, 9, peers[i])
		}
		for i, from := range hub {
			for j, to := range peers {
				must(t, from.PostSend(datagram(nodes[j].ports[0], to, "x")))
				n.carry()
				if got := len(received(to)) == 1; got != (i == j) {
					t.Errorf("index %d to partition %d: arrived %v", i, j, got)
				}
			}
		}
	})
	for _, rule := range []struct {
		name string
		keys []ib.PKey // of the port that has both memberships
		peer []ib.PKey // that each of them is tried with
		want []bool
	}{
		{"PK-19", []ib.PKey{0x8001, 0x0002}, []ib.PKey{0x8001, 0x8002, 0x0001, 0x0002}, []bool{true, true, true, false}},
		{"PK-20", []ib.PKey{0x8001, 0x0001}, []ib.PKey{0x0001, 0x0001}, []bool{true, false}},
	} {
		t.Run(rule.name, func(t *testing.T) {
			for i, peer := range rule.peer {
				n := newNet(t)
				a, b := n.node(counters, newPort(1, rule.keys...)), n.node(counters, newPort(2, peer))
				index := uint16(i % len(rule.keys))
				from, to := a.ud(1, index), b.ud(1, 0)
				room(t, 1, to)
				must(t, from.PostSend(datagram(b.ports[0], to, "x")))
				n.carry()
				if got := len(received(to)) == 1; got != rule.want[i] {
					t.Errorf("index %d to %v: arrived %v, want %v", index, peer, got, rule.want[i])
				}
			}
		})
	}
	t.Run("PK-24", func(t *testing.T) {
		n := newNet(t)
		a := n.node(counters, newPort(1, 0xFFFF, 0, 0x8000))
		for i := range tableLen {
			key, err := a.QueryPKey(1, i)
			if err != nil || key.IsValid() != (i == 0) {
				t.Errorf("entry %d: %v, %v", i, key, err)
			}
		}
		if key, _ := a.QueryPKey(1, 9); key != ib.PKeyInvalid {
			t.Errorf("an entry that was never written reads %v", key)
		}
	})
}

// TestPKeyViolationDetails shows what is told of a drop: what trap 257 says, and
// no source QP where the packet names none.
func TestPKeyViolationDetails(t *testing.T) {
	n := newNet(t)
	a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8002))
	from, to := a.ud(1, 0), b.ud(1, 0)
	r := datagram(b.ports[0], to, "x")
	r.To.SL, r.To.Global, r.To.DGID = 5, true, b.ports[0].gids[0]
	must(t, from.PostSend(r))
	n.carry()
	got := n.last().detail
	if got.LID1 != 1 || got.LID2 != 2 || got.Key != 0x8001 || got.SL != 5 || got.QP1 != from.Number() ||
		got.QP2 != to.Number() || got.GID1 != a.ports[0].gids[0] || got.GID2 != b.ports[0].gids[0] {
		t.Errorf("offence %+v", got)
	}
	rc, _ := pair(t, endpoint.RC, a, b, 0, 0)
	must(t, rc.PostSend(endpoint.SendRequest{Data: []byte("x")}))
	n.carry()
	if got := n.last().detail; got.QP1 != 0 || got.Key != 0x8001 || got.GID1 != (ib.GID{}) {
		t.Errorf("offence of RC %+v", got)
	}
	if name := fmt.Sprint(n.last().reason); name != "P_Key base" {
		t.Errorf("reason %q", name)
	}
}

// TestQP1ThatNobodyOpened: a port checks and counts the keys of what comes for its QP1 whether or not a
// program takes it, as a port of Linux has QP1 from the start.
func TestQP1ThatNobodyOpened(t *testing.T) {
	for _, x := range []struct {
		name       string
		pkey       ib.PKey
		qkey       ib.QKey
		want       endpoint.Reason
		bad        endpoint.ViolationKind
		wrongPKeys uint32
		wrongQKeys uint32
	}{
		{"QP-16 QP-28 another partition", 0x8002, ib.QKeyGSI, endpoint.ReasonPKeyBase, endpoint.BadPKey, 1, 0},
		{"QP-16 QP-28 limited members both", 0x0003, ib.QKeyGSI, endpoint.ReasonMembership, endpoint.BadPKey, 1, 0},
		{"QK-24 wrong P_Key and Q_Key", 0x8002, 1, endpoint.ReasonPKeyBase, endpoint.BadPKey, 1, 0},
		{"QK-12 wrong Q_Key", 0x8003, 1, endpoint.ReasonQKey, endpoint.BadQKey, 0, 1},
		{"QP-16 right keys", 0x8003, ib.QKeyGSI, endpoint.ReasonNoQP, 0, 0, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := newNet(t)
			to := n.node(counters, newPort(2, 0x8001, 0x0003))
			b, v, err := packet.Append(nil, packet.OpCodeUDSendOnly, false, make([]byte, 256))
			must(t, err)
			v.LRH.SetSLID(1)
			v.LRH.SetDLID(2)
			v.BTH.SetDestQP(ib.QP1)
			v.BTH.SetPKey(x.pkey)
			v.DETH.SetQKey(x.qkey)
			v.DETH.SetSrcQP(ib.QP1)
			must(t, packet.Seal(b))
			if got := n.arrive(to, 1, b); got.reason != x.want || got.bad != x.bad {
				t.Errorf("%v, violation %d: want %v, %d", got.reason, got.bad, x.want, x.bad)
			}
			wantCounters(t, to, x.wrongPKeys, x.wrongQKeys)
		})
	}
}
