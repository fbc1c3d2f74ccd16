package simfabric_test

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/simfabric"
)

// A reliable connection: a message of several packets, an RDMA WRITE and an RDMA
// READ; and what the sender sees when the peer's partition is another: nothing
// comes back.
func Example_reliableConnection() {
	f := open(guide)
	defer f.Close()
	a, b, c := is(f.OpenDevice("A")), is(f.OpenDevice("B")), is(f.OpenDevice("C"))
	newRC := func(d *verbs.Device) (*verbs.QP, *verbs.CQ) {
		cq := is(d.CreateCQ(16))
		return is(d.CreateQP(verbs.QPInit{Type: verbs.QPTypeRC, SendCQ: cq, ReceiveCQ: cq})), cq
	}
	join := func(p, q *verbs.QP, x, y *verbs.Device, px, py ib.PKey) {
		for _, end := range []struct {
			qp       *verbs.QP
			from, to *verbs.Device
			key      ib.PKey
			number   ib.QPN
		}{{p, x, y, px, q.Number()}, {q, y, x, py, p.Number()}} {
			at := verbs.QPAttr{
				State: verbs.StateInit, Port: 1, PKeyIndex: indexOf(end.from, end.key), AV: verbs.AHAttr{DLID: is(end.to.QueryPort(1)).LID},
				PathMTU: ib.MTU256, DestQPN: end.number, MinRNRTimer: 12, Timeout: 8, RetryCount: 2, RNRRetry: 2,
			}
			must(end.qp.Modify(at, verbs.AttrState|verbs.AttrPort|verbs.AttrPKeyIndex))
			at.State = verbs.StateRTR
			must(end.qp.Modify(at, verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN|verbs.AttrMinRNRTimer))
			at.State = verbs.StateRTS
			must(end.qp.Modify(at, verbs.AttrState|verbs.AttrSQPSN|verbs.AttrTimeout|verbs.AttrRetryCount|verbs.AttrRNRRetry))
		}
	}

	from, sent := newRC(a)
	to, got := newRC(b)
	join(from, to, a, b, 0x8001, 0x0001)
	memory := is(b.RegisterMemory(16, 0x1000, verbs.AccessRemoteRead|verbs.AccessRemoteWrite))
	must(to.PostReceive(9, 1000))
	must(from.PostSend(verbs.SendWR{ID: 1, Data: bytes.Repeat([]byte{'x'}, 700)}))
	must(from.PostSend(verbs.SendWR{ID: 2, Op: verbs.OpWrite, Data: []byte("written"), RemoteAddress: 0x1004, RKey: memory.RKey()}))
	must(from.PostSend(verbs.SendWR{ID: 3, Op: verbs.OpRead, Length: 4, RemoteAddress: 0x1004, RKey: memory.RKey()}))
	for range 3 {
		for _, wc := range is(sent.Wait(1, time.Second)) {
			fmt.Printf("%d %v %v %q\n", wc.ID, wc.Opcode, wc.Status, wc.Data)
		}
	}
	for _, wc := range is(got.Wait(1, time.Second)) {
		fmt.Println(wc.ID, wc.Opcode, len(wc.Data), "bytes, P_Key", wc.PKey)
	}
	fmt.Printf("%q\n", is(memory.Read(4, 7)))

	limited, tried := newRC(b)
	other, _ := newRC(c)
	join(limited, other, b, c, 0x0001, 0x0001) // both limited
	must(limited.PostSend(verbs.SendWR{ID: 4, Data: []byte("hello")}))
	must(limited.PostSend(verbs.SendWR{ID: 5, Data: []byte("hello")}))
	for range 2 {
		for _, wc := range is(tried.Wait(1, time.Second)) {
			fmt.Println(wc.ID, wc.Status)
		}
	}
	fmt.Println("sender", is(limited.Query()).State, "receiver", is(other.Query()).State)
	// Output:
	// 1 IBV_WC_SEND IBV_WC_SUCCESS ""
	// 2 IBV_WC_RDMA_WRITE IBV_WC_SUCCESS ""
	// 3 IBV_WC_RDMA_READ IBV_WC_SUCCESS "writ"
	// 9 IBV_WC_RECV 700 bytes, P_Key 0x8001
	// "written"
	// 4 IBV_WC_RETRY_EXC_ERR
	// 5 IBV_WC_WR_FLUSH_ERR
	// sender ERR receiver RTS
}

// The guide, third comment: the architecture has no broadcast. No address reaches
// everybody; what there is are multicast groups, whose members joined.
func Example_noBroadcast() {
	f := open(`
version: 1
default: none
partitions:
  - {name: one, pkey: 0x0001, ipoib: true, members: {full: [{at: "S1:2"}, {at: "S1:3"}, {at: "S1:4"}]}}
`)
	defer f.Close()
	a, b, c := newDatagram(f, "A", 0x8001, 0xB1B), newDatagram(f, "B", 0x8001, 0xB1B), newDatagram(f, "C", 0x8001, 0xB1B)
	all := is(a.d.CreateAH(verbs.AHAttr{Port: 1, DLID: 0xFFFF}))
	err := a.PostSend(verbs.SendWR{Data: []byte("hello"), AH: all, RemoteQPN: ib.QPMulticast, RemoteQKey: 0xB1B})
	fmt.Println("broadcast:", errors.Is(err, verbs.ErrRequest))

	mgid := is(ib.ParseGID("ff12:401b:8001::ffff:ffff"))
	var group *verbs.MulticastGroup
	for _, x := range []*datagram{a, b} {
		group = is(x.d.JoinMulticast(1, uint16(indexOf(x.d, 0x8001)), mgid, time.Second))
	}
	fmt.Println("joined", group.MGID, "Q_Key", group.QKey, "P_Key", group.PKey)
	must(f.Advance(time.Second)) // the manager leads the group to B
	for _, x := range []*datagram{b, c} {
		must(x.AttachMulticast(group.MGID, group.MLID))
	}
	way := is(a.d.CreateAH(verbs.AHAttr{Port: 1, DLID: group.MLID, Global: true, DGID: group.MGID, HopLimit: 1}))
	must(a.PostSend(verbs.SendWR{Data: []byte("hello"), AH: way, RemoteQPN: ib.QPMulticast, RemoteQKey: group.QKey}))
	fmt.Println("B, a member, receives", b.receives())
	fmt.Println("C, no member, receives", c.receives())
	must(b.DetachMulticast(group.MGID, group.MLID))
	must(a.PostSend(verbs.SendWR{Data: []byte("hello"), AH: way, RemoteQPN: ib.QPMulticast, RemoteQKey: group.QKey}))
	fmt.Println("B, detached, receives", b.receives())
	// Output:
	// broadcast: true
	// joined ff12:401b:8001::ffff:ffff Q_Key 0x00000b1b P_Key 0x8001
	// B, a member, receives "hello"
	// C, no member, receives nothing
	// B, detached, receives nothing
}

// Raw packets have no P_Key: no partition keeps them apart. The manager has
// switches filter them, unless the policy says otherwise.
func Example_raw() {
	for _, policy := range []string{tenants, "raw: allow\n" + tenants} {
		f := open(policy)
		a, d := is(f.OpenDevice("A")), is(f.OpenDevice("D"))
		var pairs [2]*verbs.QP
		var queues [2]*verbs.CQ
		for i, x := range []*verbs.Device{a, d} {
			queues[i] = is(x.CreateCQ(16))
			pairs[i] = is(x.CreateQP(verbs.QPInit{Type: verbs.QPTypeRawEtherType, SendCQ: queues[i], ReceiveCQ: queues[i]}))
			must(pairs[i].Modify(verbs.QPAttr{State: verbs.StateInit, Port: 1}, verbs.AttrState|verbs.AttrPort))
			must(pairs[i].PostReceive(1, 256))
			must(pairs[i].Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.AttrState))
			must(pairs[i].Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState))
		}
		way := is(a.CreateAH(verbs.AHAttr{Port: 1, DLID: is(d.QueryPort(1)).LID}))
		must(pairs[0].PostSend(verbs.SendWR{Data: []byte("raw!"), AH: way, EtherType: 0x0800}))
		got := is(queues[1].Wait(1, time.Millisecond))
		fmt.Println("partitions of A and D differ, arrived:", len(got))
		must(f.Close())
	}
	// Output:
	// partitions of A and D differ, arrived: 0
	// partitions of A and D differ, arrived: 1
}

// Asynchronous events come from what really happened: a cable, a policy, another
// subnet manager.
func Example_events() {
	f := is(simfabric.Open(simfabric.Options{Topology: star, Policy: guide, Standby: "D"}))
	defer f.Close()
	d := is(f.OpenDevice("A"))
	tell := func(what string) {
		fmt.Println(what)
		told := map[verbs.EventType]bool{} // one write may come again
		for e, ok, err := d.WaitEvent(time.Minute); ok; e, ok, err = d.WaitEvent(time.Minute) {
			must(err)
			if !told[e.Type] {
				fmt.Println("   ", e.Type, "port", e.Port)
			}
			told[e.Type] = true
		}
	}
	must(f.Unplug("A", 1))
	tell("the cable is pulled")
	must(f.Plug("A", 1))
	tell("the cable is put back")
	must(f.SetPolicy("version: 1\ndefault: full\n"))
	tell("another policy")
	must(f.StopManager())
	tell("the manager ends, the standby takes over")
	must(f.PowerOff("A"))
	tell("the power goes")
	_, err := d.QueryPort(1)
	fmt.Println(err)
	// Output:
	// the cable is pulled
	//     IBV_EVENT_PORT_ERR port 1
	// the cable is put back
	//     IBV_EVENT_PORT_ACTIVE port 1
	// another policy
	//     IBV_EVENT_PKEY_CHANGE port 1
	// the manager ends, the standby takes over
	//     IBV_EVENT_CLIENT_REREGISTER port 1
	//     IBV_EVENT_SM_CHANGE port 1
	// the power goes
	//     IBV_EVENT_DEVICE_FATAL port 0
	// the host lost its power since it was opened: the device was removed
}
