package guest

import (
	"context"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/simserve/plug"
	"github.com/ibwarden/ibwarden/internal/simserve/qib"
)

// Host is a machine in the place of a host of a fabric that is served.
type Host struct {
	*Machine
	Node   string      // the host's name, as it was asked for
	GUID   ib.NodeGUID // of the adapter and of its port: that of the host's port
	Memory int         // in MB
}

// StartHost starts a machine in the place of a host of the fabric that ibwarden sim serves under
// a name. Its name is the first word of the host's description. Options give its memory, its image
// and its console. It ends as every machine does, and with the fabric; then the simulated host is
// back.
func StartHost(ctx context.Context, socket, node string, o Options) (*Host, error) {
	d, err := plug.Dial(socket, node)
	if err != nil {
		return nil, err
	}
	o.GUID, o.Name = ib.NodeGUID(d.Port), hostName(d.Description, node)
	if o.Lie.GUID != 0 {
		o.GUID = o.Lie.GUID
	}
	if o.GUID>>40 == 0 && o.GUID>>24 != 0 {
		d.Close()
		return nil, fmt.Errorf("node %s: the port's GUID is %v: the driver of a Linux host takes a GUID of which bytes 0 to 2 are 0, and 3 and 4 are not, for one of an old format, and changes it", node, d.Port)
	}
	var lies *liar
	if o.Lie.PKey != 0 {
		lies = &liar{key: o.Lie.PKey}
	}
	o.Wire = deviceWire{d, lies}
	m, err := Start(ctx, o)
	if err != nil {
		d.Close()
		return nil, err
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	go func() {
		err := d.Run(deviceCable{m, lies})
		select {
		case <-m.done:
		default:
			m.fail(fmt.Errorf("guest %s: the fabric is gone: %w", o.Name, err))
		}
	}()
	go func() {
		<-m.done
		d.Close()
	}()
	return &Host{Machine: m, Node: node, GUID: o.GUID, Memory: o.Memory}, nil
}

// hostName is a host name made of a node's description, or else of its name.
func hostName(description, node string) string {
	for _, s := range []string{description, node} {
		s, _, _ = strings.Cut(strings.TrimSpace(s), " ")
		s = strings.Trim(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
				return r
			}
			return '-'
		}, s), "-.")
		if s != "" {
			return s[:min(len(s), 63)] // what Linux allows
		}
	}
	return "guest"
}

// deviceWire brings what leaves the machine's port to the fabric. What cannot be written is of a
// fabric that has ended: StartHost sees that by reading.
type deviceWire struct {
	d    *plug.Device
	lies *liar // nil for an honest adapter
}

func (w deviceWire) Send(packet []byte) {
	if w.lies != nil {
		packet = w.lies.change(packet, true)
	}
	_ = w.d.Send(packet)
}
func (w deviceWire) SetLink(end qib.End) { _ = w.d.Poll(end.Polls, end.Width, end.Speed) }

// deviceCable is the other direction.
type deviceCable struct {
	m    *Machine
	lies *liar
}

func (c deviceCable) LinkUp(w smp.LinkWidth, s smp.LinkSpeed) {
	c.m.SetPeer(qib.End{Polls: true, Width: w, Speed: s})
}
func (c deviceCable) LinkDown() { c.m.SetPeer(qib.End{}) }
func (c deviceCable) Receive(bytes []byte) {
	if c.lies != nil {
		bytes = c.lies.change(bytes, false)
	}
	c.m.Deliver(bytes)
}
