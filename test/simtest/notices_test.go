package simtest

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// NO-02: of devices that keep their events and send no traps, the manager reads what they keep, tells it
// once, and empties their queues, under the M_Key that it has given them.
func TestNO02QueuesOfNotices(t *testing.T) {
	list := topology.Demo()
	s := setup{list: list, policy: settingsPolicy(t, list, ""), manager: keyed()}
	s.fabric = fabric.Config{Profile: func(n *topology.Node, d *sma.Config) {
		if n.ID == "red-1" {
			for i := range d.Ports {
				d.Ports[i].CapabilityMask = d.Ports[i].CapabilityMask&^smp.CapTrapSupported | smp.CapNoticeSupported
			}
		}
	}}
	w := bringUp(t, s)
	w.calm()
	red := w.host("red-1")
	w.forget()
	m := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID, Method: mad.MethodSet, AttributeID: smp.AttrPortInfo, MKey: 0xbad,
	}
	for range 3 {
		wrong := m
		w.agent(red.node).Handle(w.fabric.Now(), sma.Ingress{Port: red.num}, &wrong)
	}
	w.calm()
	told := 0
	for _, e := range w.events {
		if x, is := e.Event.(event.Trapped); is && x.Number == smp.TrapBadMKey && *x.Report.At.Name == "red-1 HCA-1" {
			told++
		}
	}
	if told != 3 {
		t.Errorf("%d of 3 events were told", told)
	}
	ask := m
	ask.Method, ask.AttributeID, ask.MKey = mad.MethodGet, smp.AttrNotice, w.info(red).MKey
	w.agent(red.node).Handle(w.fabric.Now(), sma.Ingress{Port: red.num}, &ask)
	var n smp.Notice
	w.must(n.UnmarshalBinary(ask.Data[:]))
	if ask.Status != mad.StatusOK || n.NoticeCount != 0 || n.Type != smp.NoticeEmpty {
		t.Errorf("%d notices are left: %v", n.NoticeCount, n)
	}
	for _, a := range w.packets(mad.MethodGet, smp.AttrNotice) {
		if a.node != red.node {
			t.Errorf("%v, which sends traps or keeps nothing, is asked for notices", a.node)
		}
	}
}
