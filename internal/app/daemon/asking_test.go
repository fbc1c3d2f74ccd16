package daemon_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// answering is a link on which one attribute is answered by a function instead of the devices.
type answering struct {
	link.Link
	attribute mad.AttributeID
	answer    func(p *mad.SMP)
}

func (a *answering) Drive(ctx context.Context, e link.Engine, done func() bool) error {
	return a.Link.Drive(ctx, &answered{e, a}, done)
}

type answered struct {
	link.Engine
	by *answering
}

func (e *answered) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	to, some := e.Engine.Next(now, p)
	for some && p.AttributeID == e.by.attribute {
		reply := *p
		e.by.answer(&reply)
		reply.MakeResponse(mad.StatusOK)
		e.Receive(now, &reply, to)
		to, some = e.Engine.Next(now, p)
	}
	return to, some
}

// TestSharedSecretOfManagers: a manager is asked twice; it shares the secret if it answers with the key
// that is for this port, as the port that it is. It is told the key of who asks.
func TestSharedSecretOfManagers(t *testing.T) {
	inner := broughtUp(t)
	defer inner.Close()
	ring := mkey.NewRing([mkey.SecretSize]byte{9})
	var self, other ib.PortGUID
	f := snap(t, inner, sweep.Options{}).Fabric
	for _, p := range f.EndPorts() {
		if self = f.Self.GUID; p.GUID != self && p.Node.Switch == nil {
			other = p.GUID
		}
	}
	for _, x := range []struct {
		name   string
		info   smp.SMInfo
		ring   *mkey.Ring
		trust  observed.Trust
		silent bool
	}{
		{"without a secret", smp.SMInfo{GUID: other, SMKey: ring.SMKey(other, self)}, nil, observed.TrustUnknown, false},
		{"with the secret", smp.SMInfo{GUID: other, SMKey: ring.SMKey(other, self), ActCount: 7}, ring, observed.TrustShared, false},
		{"with a key for another", smp.SMInfo{GUID: other, SMKey: ring.SMKey(other, other)}, ring, observed.TrustUnknown, false},
		{"with the key of another", smp.SMInfo{GUID: self, SMKey: ring.SMKey(other, self)}, ring, observed.TrustUnknown, false},
		{"without a key", smp.SMInfo{GUID: other}, ring, observed.TrustUnknown, false},
	} {
		asked, told := 0, 0
		list := managersOf(t, inner, &x.info, x.ring, other, func(own *smp.SMInfo) {
			if asked++; x.ring == nil && *own == (smp.SMInfo{}) || x.ring != nil && own.GUID == self && own.SMKey == ring.SMKey(self, other) {
				told++
			}
		})
		if len(list) != 1 || list[0].Port != other || list[0].Trust != x.trust || !list[0].Answered || list[0].Missed != 0 || asked != 2 || told != 2 {
			t.Errorf("%s: %+v, asked %d times, told %d times who asks", x.name, list, asked, told)
		}
	}
}

// managersOf asks the one manager of a fabric, at a port, which answers with info; asked sees each question.
func managersOf(t *testing.T, inner link.Link, info *smp.SMInfo, ring *mkey.Ring, at ib.PortGUID, asked func(*smp.SMInfo)) []observed.SubnetManager {
	t.Helper()
	to := &answering{inner, smp.AttrSMInfo, func(p *mad.SMP) {
		var own smp.SMInfo
		if err := own.UnmarshalBinary(p.Data[:]); err != nil {
			t.Error(err)
		}
		asked(&own)
		if err := info.Encode(&p.Data); err != nil {
			t.Error(err)
		}
	}}
	o := sweep.Options{}
	if ring != nil {
		o.Keys = &mkey.Keys{Ring: ring, Book: new(mkey.Book)}
	}
	list, _, _, err := daemon.FabricManagers(t.Context(), &isSM{to, at}, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// isSM is a link on which one port says that it has a manager.
type isSM struct {
	*answering
	at ib.PortGUID
}

func (l *isSM) Drive(ctx context.Context, e link.Engine, done func() bool) error {
	return l.answering.Drive(ctx, &marked{Engine: e, by: l}, done)
}

type marked struct {
	link.Engine
	by   *isSM
	last string
}

// Receive sets IsSM in what is read of the port: a device has the path by which its NodeInfo came.
func (e *marked) Receive(now time.Duration, p *mad.SMP, from ib.LID) {
	path := string(p.InitialPath[1 : p.HopCount+1])
	switch p.AttributeID {
	case smp.AttrNodeInfo:
		var n smp.NodeInfo
		if n.UnmarshalBinary(p.Data[:]) == nil && n.PortGUID == e.by.at {
			e.last = path
		}
	case smp.AttrPortInfo:
		var info smp.PortInfo
		if e.last != "" && path == e.last && info.UnmarshalBinary(p.Data[:]) == nil {
			info.CapabilityMask |= smp.CapIsSM
			_ = info.Encode(&p.Data) // as it was read, but for a bit
		}
	}
	e.Engine.Receive(now, p, from)
}

// TestLightAnswers: what a device answers that does not do as it was told is an error that names it.
func TestLightAnswers(t *testing.T) {
	inner := broughtUp(t)
	defer inner.Close()
	for _, x := range []struct {
		name   string
		answer func(p *mad.SMP)
		want   string
	}{
		{"does it", func(*mad.SMP) {}, ""},
		{"does not", func(p *mad.SMP) { p.Data[0] ^= 0x80 }, ": LEDInfo: it answers that its light does not do that"},
	} {
		sets := 0
		to := &answering{inner, smp.AttrLEDInfo, func(p *mad.SMP) {
			if p.Method == mad.MethodSet && p.Data[0] == 0x80 {
				sets++
			}
			x.answer(p)
		}}
		for _, p := range snap(t, inner, sweep.Options{}).Fabric.EndPorts()[:1] {
			p.Info.CapabilityMask |= smp.CapLEDInfo
			want := ""
			if x.want != "" {
				want = p.Agent().String() + x.want
			}
			if err := daemon.Light(t.Context(), to, p, true); errText(err) != want || sets != 1 {
				t.Errorf("%s: %v, %d writes; want %q", x.name, err, sets, want)
			}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	p := snap(t, inner, sweep.Options{}).Fabric.EndPorts()[0]
	p.Info.CapabilityMask |= smp.CapLEDInfo
	if err := daemon.Light(ctx, inner, p, true); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
}
