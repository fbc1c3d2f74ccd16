package simfabric_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/simfabric"
)

// One host sends a datagram to another: everything from the device to the
// completion.
func Example() {
	fabric := is(simfabric.Open(simfabric.Options{Topology: star, Policy: guide}))
	defer fabric.Close()

	a, b := is(fabric.OpenDevice("A")), is(fabric.OpenDevice("B"))
	var pairs [2]*verbs.QP
	var queues [2]*verbs.CQ
	for i, d := range []*verbs.Device{a, b} {
		queues[i] = is(d.CreateCQ(16))
		pairs[i] = is(d.CreateQP(verbs.QPInit{Type: verbs.QPTypeUD, SendCQ: queues[i], ReceiveCQ: queues[i]}))
		init := verbs.QPAttr{State: verbs.StateInit, Port: 1, PKeyIndex: 1, QKey: 0x1234}
		must(pairs[i].Modify(init, verbs.AttrState|verbs.AttrPort|verbs.AttrPKeyIndex|verbs.AttrQKey))
		must(pairs[i].Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.AttrState))
		must(pairs[i].Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState|verbs.AttrSQPSN))
	}
	must(pairs[1].PostReceive(7, 256))

	there := is(b.QueryPort(1))
	way := is(a.CreateAH(verbs.AHAttr{Port: 1, DLID: there.LID}))
	must(pairs[0].PostSend(verbs.SendWR{ID: 1, Data: []byte("hello"), AH: way, RemoteQPN: pairs[1].Number(), RemoteQKey: 0x1234}))

	for _, wc := range is(queues[0].Wait(1, time.Millisecond)) {
		fmt.Println(wc.ID, wc.Opcode, wc.Status)
	}
	for _, wc := range is(queues[1].Wait(1, time.Millisecond)) {
		fmt.Printf("%d %v %v %q with P_Key %v\n", wc.ID, wc.Opcode, wc.Status, wc.Data, wc.PKey)
	}
	// Output:
	// 1 IBV_WC_SEND IBV_WC_SUCCESS
	// 7 IBV_WC_RECV IBV_WC_SUCCESS "hello" with P_Key 0x8001
}

// The guide: every end port has a table of P_Keys, whose size is an attribute of the
// port (pkey_tbl_len) and at least 1. One entry at least is valid; the default P_Key
// is 0xFFFF. A special value, invalid, stands in entries without a key.
func Example_pKeyTable() {
	f := open("version: 1\ndefault: full\n", map[string]map[string]uint64{"A": {"partition-cap": 4}})
	defer f.Close()
	for _, host := range []string{"A", "B"} {
		d := is(f.OpenDevice(host))
		fmt.Println(host, "has", is(d.QueryPort(1)).PKeyTableLen, "entries")
	}
	d := is(f.OpenDevice("A"))
	for i := range is(d.QueryPort(1)).PKeyTableLen {
		key := is(d.QueryPKey(1, i))
		fmt.Printf("%d: %v valid=%v full=%v\n", i, key, key.IsValid(), key.IsFull())
	}
	_, err := d.QueryPKey(1, 4)
	fmt.Println(err)
	// Output:
	// A has 4 entries
	// B has 128 entries
	// 0: 0xffff valid=true full=true
	// 1: 0x0000 valid=false full=false
	// 2: 0x0000 valid=false full=false
	// 3: 0x0000 valid=false full=false
	// port 1: P_Key index 4: want 0 to 3: P_Key index outside the table
}

// The guide: a port may be a full member of some partitions and a limited one of
// others, and both of one partition.
func Example_memberships() {
	f := open(`
version: 1
default: full
allow_both: true
partitions:
  - {name: one, pkey: 0x0001, members: {both: [{at: "S1:2"}], limited: [{at: "S1:3"}], full: [{at: "S1:4"}]}}
  - {name: two, pkey: 0x0002, members: {limited: [{at: "S1:2"}]}}
`)
	defer f.Close()
	d := is(f.OpenDevice("A"))
	for i := range 4 {
		fmt.Println(i, is(d.QueryPKey(1, i)))
	}
	full, limited := newDatagram(f, "A", 0x8001, 1), newDatagram(f, "A", 0x0001, 1)
	b, c := newDatagram(f, "B", 0x0001, 1), newDatagram(f, "C", 0x8001, 1)
	fmt.Println("A as full member and B:", reaches(full, b, 1))
	fmt.Println("A as limited member and B:", reaches(limited, b, 1))
	fmt.Println("A as limited member and C:", reaches(limited, c, 1))
	// Output:
	// 0 0xffff
	// 1 0x0001
	// 2 0x8001
	// 3 0x0002
	// A as full member and B: can communicate
	// A as limited member and B: cannot communicate
	// A as limited member and C: can communicate
}

// The guide: each queue pair has an index into the P_Key table of its port, which
// ibv_modify_qp() sets while a connection is made.
func Example_pKeyIndex() {
	f := open(guide)
	defer f.Close()
	d := is(f.OpenDevice("A"))
	cq := is(d.CreateCQ(1))
	qp := is(d.CreateQP(verbs.QPInit{Type: verbs.QPTypeUD, SendCQ: cq, ReceiveCQ: cq}))
	fmt.Printf("created: %+v\n", is(qp.Query()).State)

	mask := verbs.AttrState | verbs.AttrPort | verbs.AttrPKeyIndex | verbs.AttrQKey
	to := verbs.QPAttr{State: verbs.StateInit, Port: 1, QKey: 0x1234}
	for _, index := range []uint16{128, 5, 1} {
		to.PKeyIndex = index
		err := qp.Modify(to, mask)
		fmt.Println("index", index, errors.Is(err, verbs.ErrPKeyIndex), errors.Is(err, verbs.ErrPKeyEmpty), err)
	}
	now := is(qp.Query())
	fmt.Println(now.State, "port", now.Port, "index", now.PKeyIndex, "Q_Key", now.QKey)
	fmt.Println(qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState))
	// Output:
	// created: RESET
	// index 128 true false QP 2: P_Key index 128 of port 1: want 0 to 127: P_Key index outside the table
	// index 5 false true QP 2: P_Key index 5 of port 1: P_Key index of an empty entry
	// index 1 false false <nil>
	// INIT port 1 index 1 Q_Key 0x00001234
	// QP 2: modify from INIT to RTS: not in this state
}

// The guide's example: four queue pairs, A with P_Key 0x8001, B and C with 0x0001, D
// with 0x8002. A can talk to B and to C; B and C cannot, since neither is a full
// member; D can talk to nobody.
func Example_fourQueuePairs() {
	f := open(guide)
	defer f.Close()
	keys := map[string]ib.PKey{"A": 0x8001, "B": 0x0001, "C": 0x0001, "D": 0x8002}
	qp := map[string]*datagram{}
	for host, key := range keys {
		qp[host] = newDatagram(f, host, key, 0x1234)
	}
	for _, pair := range []string{"AB", "AC", "BC", "DA", "DB", "DC"} {
		x, y := pair[:1], pair[1:]
		fmt.Printf("QP%s and QP%s %s\n", x, y, reaches(qp[x], qp[y], 0x1234))
	}
	// Output:
	// QPA and QPB can communicate
	// QPA and QPC can communicate
	// QPB and QPC cannot communicate
	// QPD and QPA cannot communicate
	// QPD and QPB cannot communicate
	// QPD and QPC cannot communicate
}

// The guide: a send request becomes packets, and each of them carries the P_Key that
// the queue pair was set to use.
func Example_pKeySent() {
	f := open(`
version: 1
default: full
partitions:
  - {name: one, pkey: 0x0001, members: {full: [{at: "S1:2"}, {at: "S1:3"}]}}
  - {name: two, pkey: 0x0002, members: {limited: [{at: "S1:2"}], full: [{at: "S1:3"}]}}
`)
	defer f.Close()
	for _, key := range []ib.PKey{0xFFFF, 0x8001, 0x0002} {
		from := newDatagram(f, "A", key, 1)
		to := newDatagram(f, "B", key.Base().Full(), 1)
		from.send(to, 1, "x")
		wc, _ := to.receive()
		fmt.Println("index", is(from.Query()).PKeyIndex, "packet", wc.PKey, "entry of the receiver", wc.PKeyIndex)
	}
	// Output:
	// index 0 packet 0xffff entry of the receiver 0
	// index 1 packet 0x8001 entry of the receiver 1
	// index 2 packet 0x0002 entry of the receiver 2
}

// The guide: what counts is the value of a P_Key, not where it stands in the table.
func Example_pKeyLocation() {
	f := open(`
version: 1
default: full
partitions:
  - {name: zero, pkey: 0x0100, members: {full: [{at: "S1:2"}]}}
  - {name: one, pkey: 0x0001, members: {full: [{at: "S1:2"}, {at: "S1:3"}]}}
`)
	defer f.Close()
	a, b := newDatagram(f, "A", 0x8001, 1), newDatagram(f, "B", 0x8001, 1)
	fmt.Println("index", is(a.Query()).PKeyIndex, "at A,", is(b.Query()).PKeyIndex, "at B:", reaches(a, b, 1))
	// Output:
	// index 2 at A, 1 at B: can communicate
}

// The guide: a packet with the wrong P_Key is dropped without a word; bad_pkey_cntr of
// the port goes up if the device has IBV_DEVICE_BAD_PKEY_CNTR; the receiving queue
// pair's state does not change.
func Example_badPKeyCounter() {
	// The switch leaves checking to the hosts, so that the packets get there.
	f := open(guide, map[string]map[string]uint64{
		"S1": {"enforcement-cap": 0, "inbound-enforcement": 0, "outbound-enforcement": 0},
		"C":  {"bad-pkey-counter": 0},
	})
	defer f.Close()
	d := newDatagram(f, "D", 0x8002, 1)
	for _, host := range []string{"B", "C"} {
		to := newDatagram(f, host, 0x0001, 1)
		for range 3 {
			d.send(to, 1, "hello")
		}
		fmt.Printf("%s receives %s; counts: %v, bad_pkey_cntr %d; %v\n", host, to.receives(),
			to.d.Query().Flags&verbs.DeviceBadPKeyCounter != 0, is(to.d.QueryPort(1)).BadPKeyCounter, is(to.Query()).State)
	}
	// Output:
	// B receives nothing; counts: true, bad_pkey_cntr 3; RTS
	// C receives nothing; counts: false, bad_pkey_cntr 0; RTS
}

// The guide: values in the table may change, and applications have to cope. The
// Russian text adds how: IBV_EVENT_PKEY_CHANGE comes, and whoever keeps values reads
// them again.
func Example_pKeyChange() {
	const policy = `
version: 1
default: full
partitions:
  - {name: zero, pkey: 0x0100, members: {full: [{at: "S1:2"}]}}
  - {name: one, pkey: %s, members: {full: [{at: "S1:2"}, {at: "S1:3"}]}}
`
	f := open(fmt.Sprintf(policy, "0x0001"))
	defer f.Close()
	a, b := newDatagram(f, "A", 0x8001, 1), newDatagram(f, "B", 0x8001, 1)
	fmt.Println("before:", reaches(a, b, 1))

	must(f.SetPolicy(fmt.Sprintf(policy, "0x0002")))
	for _, x := range []*datagram{a, b} {
		for e, ok, err := x.d.NextEvent(); ok; e, ok, err = x.d.NextEvent() {
			must(err)
			fmt.Println(x.d.Query().Node, e.Type, "port", e.Port)
		}
		fmt.Println(x.d.Query().Node, "index", is(x.Query()).PKeyIndex, "now", is(x.d.QueryPKey(1, int(is(x.Query()).PKeyIndex))))
	}
	for _, x := range []*datagram{a, b} {
		must(x.Modify(verbs.QPAttr{State: verbs.StateSQD}, verbs.AttrState))
		must(x.Modify(verbs.QPAttr{State: verbs.StateSQD, PKeyIndex: indexOf(x.d, 0x8002)}, verbs.AttrState|verbs.AttrPKeyIndex))
		must(x.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState))
	}
	fmt.Println("after:", reaches(a, b, 1))
	// Output:
	// before: can communicate
	// A IBV_EVENT_PKEY_CHANGE port 1
	// A index 2 now 0x0000
	// B IBV_EVENT_PKEY_CHANGE port 1
	// B index 1 now 0x0000
	// after: can communicate
}
