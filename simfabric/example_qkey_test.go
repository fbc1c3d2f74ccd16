package simfabric_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
)

// tenants has all hosts in one partition.
const tenants = `
version: 1
default: none
partitions:
  - {name: one, pkey: 0x0001, members: {full: [{at: "S1:2"}, {at: "S1:3"}, {at: "S1:4"}]}}
`

// The guide: if the top bit of a send request's Q_Key is set, the packet carries the
// queue pair's own, else the request's. Who takes the packet shows which it was.
func Example_qKeySent() {
	f := open(tenants)
	defer f.Close()
	from := newDatagram(f, "A", 0x8001, 0x1234)
	has := map[ib.QKey]*datagram{}
	for _, key := range []ib.QKey{0x1234, 0x1111} {
		has[key] = newDatagram(f, "B", 0x8001, key)
	}
	for _, asked := range []ib.QKey{0x80000000, 0x80001111, 0x1111} {
		for _, key := range []ib.QKey{0x1234, 0x1111} {
			from.send(has[key], asked, "hello")
			fmt.Println("request", asked, "context 0x00001234, receiver", key, "receives", has[key].receives())
		}
	}
	// Output:
	// request 0x80000000 context 0x00001234, receiver 0x00001234 receives "hello"
	// request 0x80000000 context 0x00001234, receiver 0x00001111 receives nothing
	// request 0x80001111 context 0x00001234, receiver 0x00001234 receives "hello"
	// request 0x80001111 context 0x00001234, receiver 0x00001111 receives nothing
	// request 0x00001111 context 0x00001234, receiver 0x00001234 receives nothing
	// request 0x00001111 context 0x00001234, receiver 0x00001111 receives "hello"
}

// The guide: a packet whose Q_Key matches the receiver's is taken. One that does not
// match is dropped without a word; qkey_viol_cntr of the port goes up if the device
// has IBV_DEVICE_BAD_QKEY_CNTR; the receiving queue pair's state does not change.
func Example_qKeyReceived() {
	f := open(tenants, map[string]map[string]uint64{"C": {"bad-qkey-counter": 0}})
	defer f.Close()
	from := newDatagram(f, "A", 0x8001, 1)
	for _, host := range []string{"B", "C"} {
		to := newDatagram(f, host, 0x8001, 0x1234)
		from.send(to, 0x1234, "match")
		fmt.Println(host, "receives", to.receives())
		for range 3 {
			from.send(to, 0x1235, "no match")
		}
		fmt.Printf("%s receives %s; counts: %v, qkey_viol_cntr %d; %v\n", host, to.receives(),
			to.d.Query().Flags&verbs.DeviceBadQKeyCounter != 0, is(to.d.QueryPort(1)).QKeyViolationCounter, is(to.Query()).State)
	}
	// Output:
	// B receives "match"
	// B receives nothing; counts: true, qkey_viol_cntr 3; RTS
	// C receives "match"
	// C receives nothing; counts: false, qkey_viol_cntr 0; RTS
}

// The guide: any application may use any unprivileged Q_Key. Privileged code controls
// who uses privileged ones: 0x80000000 to 0x8000FFFF are free for applications,
// 0x80010000 to 0x8FFFFFFF are reserved.
func Example_qKeyValues() {
	f := open(tenants)
	defer f.Close()
	for _, privileged := range []bool{false, true} {
		var options []verbs.Option
		if privileged {
			options = append(options, verbs.Privileged())
		}
		qp := newDatagram(f, "A", 0x8001, 1, options...)
		for _, key := range []ib.QKey{0x7FFFFFFF, 0x80000000, 0x8000FFFF, 0x80010000, 0x8FFFFFFF} {
			err := qp.Modify(verbs.QPAttr{QKey: key}, verbs.AttrQKey)
			fmt.Println("privileged", privileged, key, "set", err == nil, "refused", errors.Is(err, verbs.ErrPermission), "context", is(qp.Query()).QKey)
		}
	}
	// Output:
	// privileged false 0x7fffffff set true refused false context 0x7fffffff
	// privileged false 0x80000000 set true refused false context 0x80000000
	// privileged false 0x8000ffff set true refused false context 0x8000ffff
	// privileged false 0x80010000 set false refused true context 0x8000ffff
	// privileged false 0x8fffffff set false refused true context 0x8000ffff
	// privileged true 0x7fffffff set true refused false context 0x7fffffff
	// privileged true 0x80000000 set true refused false context 0x80000000
	// privileged true 0x8000ffff set true refused false context 0x8000ffff
	// privileged true 0x80010000 set true refused false context 0x80010000
	// privileged true 0x8fffffff set true refused false context 0x8fffffff
}

// The guide: a queue pair can send or receive a privileged Q_Key only if its context
// holds it. Modify puts it there, as the guide's answer to the third comment says.
func Example_qKeyPrivileged() {
	f := open(tenants)
	defer f.Close()
	const privileged ib.QKey = 0x80000042
	to := newDatagram(f, "B", 0x8001, privileged)
	without, with := newDatagram(f, "A", 0x8001, 0x42), newDatagram(f, "A", 0x8001, privileged)
	without.send(to, privileged, "asked for")
	fmt.Println("in the request only:", to.receives())
	with.send(to, privileged, "held")
	fmt.Println("in the context:", to.receives())
	// Output:
	// in the request only: nothing
	// in the context: "held"
}

// The guide, first comment: Q_Keys are for all datagrams, but no stack and no device
// has the reliable kind. The architecture has it, and so has the fabric beneath the
// verbs: a wrong Q_Key is answered there.
func Example_reliableDatagram() {
	f := open(tenants)
	defer f.Close()
	a, b := is(f.OpenDevice("A")), is(f.OpenDevice("B"))
	cq := is(a.CreateCQ(1))
	_, err := a.CreateQP(verbs.QPInit{Type: verbs.QPTypeRD, SendCQ: cq, ReceiveCQ: cq})
	fmt.Println(errors.Is(err, verbs.ErrService), err)

	from, to := newReliable(a, 0x1234), newReliable(b, 0x1234)
	from.connect(to)
	to.connect(from)
	for _, key := range []ib.QKey{0x1234, 0x4321} {
		must(from.PostSend(verbs.SendWR{Data: []byte("hello"), EE: from.ee, RemoteQPN: to.Number(), RemoteQKey: key}))
		for _, wc := range is(from.cq.Wait(1, time.Second)) {
			fmt.Println("Q_Key", key, wc.Status)
		}
	}
	for _, wc := range is(to.cq.Wait(1, time.Second)) {
		fmt.Printf("%q\n", wc.Data)
	}
	fmt.Println("qkey_viol_cntr", is(b.QueryPort(1)).QKeyViolationCounter)
	// Output:
	// true create QP: no device has RD: not with this service
	// Q_Key 0x00001234 IBV_WC_SUCCESS
	// Q_Key 0x00004321 IBV_WC_REM_INV_RD_REQ_ERR
	// "hello"
	// qkey_viol_cntr 1
}

// reliable is an RD queue pair with its EE context.
type reliable struct {
	*verbs.QP
	d  *verbs.Device
	cq *verbs.CQ
	ee *verbs.EEContext
}

func newReliable(d *verbs.Device, key ib.QKey) *reliable {
	r := &reliable{d: d, cq: is(d.CreateCQ(16)), ee: is(d.CreateEEContext())}
	r.QP = is(d.CreateRDQP(verbs.QPInit{SendCQ: r.cq, ReceiveCQ: r.cq}))
	must(r.Modify(verbs.QPAttr{State: verbs.StateInit, QKey: key}, verbs.AttrState|verbs.AttrQKey))
	must(r.PostReceive(1, 256))
	for _, s := range []verbs.QPState{verbs.StateRTR, verbs.StateRTS} {
		must(r.Modify(verbs.QPAttr{State: s}, verbs.AttrState))
	}
	return r
}

// connect takes the EE context to RTS, with that of another at its other end.
func (r *reliable) connect(to *reliable) {
	connect(r.ee, to.d, to.ee.Number())
}

// connect takes an RC queue pair or an EE context to RTS.
func connect(x interface {
	Modify(verbs.QPAttr, verbs.QPAttrMask) error
}, to *verbs.Device, number ib.QPN) {
	a := verbs.QPAttr{
		State: verbs.StateInit, Port: 1, AV: verbs.AHAttr{DLID: is(to.QueryPort(1)).LID}, PathMTU: ib.MTU256, DestQPN: number,
		MinRNRTimer: 12, Timeout: 10, RetryCount: 3, RNRRetry: 3,
	}
	must(x.Modify(a, verbs.AttrState|verbs.AttrPort|verbs.AttrPKeyIndex))
	a.State = verbs.StateRTR
	must(x.Modify(a, verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN|verbs.AttrMinRNRTimer))
	a.State = verbs.StateRTS
	must(x.Modify(a, verbs.AttrState|verbs.AttrSQPSN|verbs.AttrTimeout|verbs.AttrRetryCount|verbs.AttrRNRRetry))
}

// The guide, second comment: P_Keys keep packets from reaching queue pairs of another
// partition at all, and a switch may drop them; Q_Keys keep queue pairs of one
// partition apart.
func Example_pKeyAndQKey() {
	for _, checks := range []bool{true, false} {
		switches := map[string]uint64{}
		if !checks {
			switches = map[string]uint64{"enforcement-cap": 0, "inbound-enforcement": 0, "outbound-enforcement": 0}
		}
		f := open(guide, map[string]map[string]uint64{"S1": switches})
		to := newDatagram(f, "A", 0x8001, 0x1234)
		for _, from := range []*datagram{newDatagram(f, "D", 0x8002, 1), newDatagram(f, "B", 0x0001, 1)} {
			from.send(to, 0x4321, "wrong Q_Key")
			received, port := to.receives(), is(to.d.QueryPort(1))
			fmt.Println("the switch checks:", checks, from.d.Query().Node, "to A:", received,
				"bad_pkey_cntr", port.BadPKeyCounter, "qkey_viol_cntr", port.QKeyViolationCounter)
		}
		must(f.Close())
	}
	// Output:
	// the switch checks: true D to A: nothing bad_pkey_cntr 0 qkey_viol_cntr 0
	// the switch checks: true B to A: nothing bad_pkey_cntr 0 qkey_viol_cntr 1
	// the switch checks: false D to A: nothing bad_pkey_cntr 1 qkey_viol_cntr 0
	// the switch checks: false B to A: nothing bad_pkey_cntr 1 qkey_viol_cntr 1
}
