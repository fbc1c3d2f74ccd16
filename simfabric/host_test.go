package simfabric_test

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/simfabric"
)

// star is a switch with a node for the subnet manager and hosts A to D.
const star = `
Switch 5 "S1"
[1] "M"[1]
[2] "A"[1]
[3] "B"[1]
[4] "C"[1]
[5] "D"[1]

Hca 1 "M"
[1] "S1"[1]

Hca 1 "A"
[1] "S1"[2]

Hca 1 "B"
[1] "S1"[3]

Hca 1 "C"
[1] "S1"[4]

Hca 1 "D"
[1] "S1"[5]
`

// guide gives the hosts the P_Keys of the guide's example: A 0x8001, B and C
// 0x0001, D 0x8002, each behind the default key.
const guide = `
version: 1
default: limited
groups:
  A: [{at: "S1:2"}]
  B: [{at: "S1:3"}]
  C: [{at: "S1:4"}]
  D: [{at: "S1:5"}]
partitions:
  - {name: one, pkey: 0x0001, members: {full: [A], limited: [B, C]}}
  - {name: two, pkey: 0x0002, members: {full: [D]}}
`

// must ends an example that went wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// is is what a call gave, which must have gone well.
func is[T any](x T, err error) T {
	must(err)
	return x
}

// open makes a fabric of the star and brings it up by a policy.
func open(policy string, devices ...map[string]map[string]uint64) *simfabric.Fabric {
	o := simfabric.Options{Topology: star, Policy: policy}
	for _, d := range devices {
		o.Devices = d
	}
	return is(simfabric.Open(o))
}

// indexOf is the place of a key in the table of port 1.
func indexOf(d *verbs.Device, key ib.PKey) uint16 {
	for i := range is(d.QueryPort(1)).PKeyTableLen {
		if is(d.QueryPKey(1, i)) == key {
			return uint16(i)
		}
	}
	panic(fmt.Sprintf("%s has no key %v", d.Query().Node, key))
}

// datagram is a UD queue pair in RTS, with room for receives.
type datagram struct {
	*verbs.QP
	d        *verbs.Device
	sent, in *verbs.CQ
}

const rooms = 64

func newDatagram(f *simfabric.Fabric, node string, key ib.PKey, qkey ib.QKey, options ...verbs.Option) *datagram {
	d := is(f.OpenDevice(node, options...))
	x := &datagram{d: d, sent: is(d.CreateCQ(rooms)), in: is(d.CreateCQ(rooms))}
	x.QP = is(d.CreateQP(verbs.QPInit{Type: verbs.QPTypeUD, SendCQ: x.sent, ReceiveCQ: x.in}))
	a := verbs.QPAttr{State: verbs.StateInit, Port: 1, PKeyIndex: indexOf(d, key), QKey: qkey}
	must(x.Modify(a, verbs.AttrState|verbs.AttrPort|verbs.AttrPKeyIndex|verbs.AttrQKey))
	for i := range rooms {
		must(x.PostReceive(uint64(i), 2048))
	}
	must(x.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.AttrState))
	must(x.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState|verbs.AttrSQPSN))
	return x
}

// send sends a datagram.
func (x *datagram) send(to *datagram, qkey ib.QKey, text string) {
	ah := is(x.d.CreateAH(verbs.AHAttr{Port: 1, DLID: is(to.d.QueryPort(1)).LID}))
	must(x.PostSend(verbs.SendWR{Data: []byte(text), AH: ah, RemoteQPN: to.Number(), RemoteQKey: qkey}))
	for _, wc := range is(x.sent.Wait(1, time.Millisecond)) {
		if wc.Status != verbs.WCSuccess {
			fmt.Println("sent:", wc.Status)
		}
	}
	must(ah.Destroy())
}

// receive is what came within a millisecond of the fabric's time.
func (x *datagram) receive() (verbs.WC, bool) {
	got := is(x.in.Wait(1, time.Millisecond))
	if len(got) == 0 {
		return verbs.WC{}, false
	}
	return got[0], true
}

// receives describes the received datagram.
func (x *datagram) receives() string {
	if wc, ok := x.receive(); ok {
		return fmt.Sprintf("%q", wc.Data)
	}
	return "nothing"
}

// reaches sends both ways and reports whether both arrived.
func reaches(a, b *datagram, qkey ib.QKey) string {
	a.send(b, qkey, "hello")
	_, there := b.receive()
	b.send(a, qkey, "hello")
	_, back := a.receive()
	switch {
	case there && back:
		return "can communicate"
	case !there && !back:
		return "cannot communicate"
	}
	return "communicate one way"
}
