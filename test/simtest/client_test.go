package simtest

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// client is a host that asks for a path again and again.
type client struct {
	*pair
	place place
	gsi   *endpoint.GSIPair
	to    ib.GID
	self  ib.GID
	tid   uint64
	last  time.Duration
	asked int
	// right is how many right answers came.
	right int
}

func (x *pair) client(from, to int) *client {
	x.t.Helper()
	nodes := x.hostNodes()
	d, err := x.fabric.Device(nodes[from].GUID)
	if err != nil {
		x.t.Fatal(err)
	}
	c := &client{pair: x, place: place{nodes[from].GUID, 1}}
	if c.gsi, err = endpoint.OpenGSI(d, 1); err != nil {
		x.t.Fatal(err)
	}
	gid := func(i int) ib.GID { return ib.MakeGID(ib.DefaultGIDPrefix, nodes[i].Ports[1].GUID) }
	c.self, c.to = gid(from), gid(to)
	return c
}

// clientInterval is the time between two requests of a client that gets no answer.
const clientInterval = 5 * time.Millisecond

// turn takes answers, and asks again when it is time.
func (c *client) turn() {
	c.gsi.Receive(func(_ *endpoint.Completion, m *[mad.Size]byte) {
		var got sa.MAD
		var path sa.PathRecord
		if got.UnmarshalBinary(m[:]) == nil && got.TransactionID == c.tid && got.Status == mad.StatusOK &&
			path.UnmarshalBinary(got.Data[:]) == nil && path.DGID == c.to && path.DLID.IsUnicast() {
			c.right++
		}
	})
	if now := c.fabric.Now(); now >= c.last+clientInterval {
		c.last = now
		c.fabric.At(now+clientInterval, func() {}) // so that it comes by
		c.ask()
	}
}

func (c *client) ask() {
	c.tid++
	c.asked++
	q := sa.PathRecord{SGID: c.self, DGID: c.to}
	q.NumbPath = 1
	b, err := q.AppendBinary(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: mad.MethodGet, TransactionID: c.tid, AttributeID: sa.AttrPathRecord,
	}, ComponentMask: sa.PathRecordSGID | sa.PathRecordDGID | sa.PathRecordNumbPath}
	copy(m.Data[:], b)
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	to := c.fabric.Agent(c.place.node).Port(c.place.num).MasterSMLID
	_ = c.gsi.Send((*[mad.Size]byte)(bytes), endpoint.SendRequest{RemoteQP: ib.QP1, To: endpoint.Address{DLID: to}}) // refused is lost
}
