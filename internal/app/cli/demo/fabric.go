package demo

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	simulated "github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/simserve/verbsd"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// messageBytes is the length of a message: 64 packets of 2,048 bytes.
const messageBytes = 128 << 10

// flows are who sends to whom, and how many messages a second.
var flows = []struct {
	from, to string
	rate     int
}{
	{"red-1", "red-4", 10}, {"red-2", "red-6", 5}, {"red-3", "red-5", 3},
	{"blue-1", "blue-6", 15}, {"blue-2", "blue-5", 5}, {"blue-3", "blue-4", 2},
	{"red-5", "storage-1", 5}, {"blue-6", "storage-3", 5},
}

const (
	brokenLeaf, brokenPort = "leaf-4", 7
	tampered               = "red-4"
)

// fabric is the simulated fabric.
type fabric struct {
	server   *ibsimd.Server
	console  *ibsimd.Console
	programs *verbsd.Server
}

// newFabric makes one that clients reach under a name. Its cables are slow ones, 1x SDR, so that what a
// program can send shows on them.
func newFabric(name string, console Console) (*fabric, error) {
	l := topology.Demo()
	for _, n := range l.Nodes {
		for p := range n.Ports {
			n.Ports[p].Enabled = topology.Rates{Width: topology.Width1x, Speed: topology.SpeedSDR}
		}
	}
	s, err := ibsimd.Listen(l, ibsimd.Config{Socket: name, Fabric: simulated.DefaultConfig()})
	if err != nil {
		return nil, err
	}
	f := &fabric{server: s, console: console(s), programs: verbsd.New(s)}
	s.Accompany(f.programs)
	return f, nil
}

// execute carries out a console command.
func (f *fabric) execute(line string) error {
	if err := f.console.Execute(line); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return nil
}

// tamper has root of a host write what he may not have into the table of his port, now and then.
func (f *fabric) tamper(ctx context.Context) error {
	for first := true; first || every(ctx, tamperEvery); first = false {
		if err := f.execute(fmt.Sprintf("Own %s PKeyTable 9=0x%04x", tampered, uint16(blueKeys.Full()))); err != nil {
			return err
		}
	}
	return nil
}

// traffic sends along all flows until ctx ends.
func (f *fabric) traffic(ctx context.Context) error {
	failed := make(chan error, len(flows))
	for _, x := range flows {
		go func() { failed <- f.send(ctx, x.from, x.to, x.rate) }()
	}
	for range flows {
		if err := <-failed; err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// send sends messages from one host to another over the first partition that they share. When either
// loses its key, as one that is moved does, messages are lost, and new queue pairs are made.
func (f *fabric) send(ctx context.Context, from, to string, rate int) error {
	for every(ctx, time.Second) {
		a, err := f.open(ctx, from)
		if err != nil {
			return err
		}
		b, err := f.open(ctx, to)
		if err != nil {
			a.Close()
			return err
		}
		err = exchange(ctx, a, b, rate)
		a.Close()
		b.Close()
		if err != nil {
			return fmt.Errorf("%s to %s: %w", from, to, err)
		}
	}
	return nil
}

// open opens the adapter of a host.
func (f *fabric) open(ctx context.Context, host string) (*verbs.Device, error) {
	ours, theirs := net.Pipe()
	go f.programs.ServeConn(ctx, theirs, false)
	return verbs.Open(ours, host)
}

// keptFor is how long a pair of queue pairs is used: then keys are looked up again.
const keptFor = 10 * time.Second

// exchange writes messages from a into the memory of b for a while. Hosts that share no partition send
// nothing.
func exchange(ctx context.Context, a, b *verbs.Device, rate int) error {
	ctx, stop := context.WithTimeout(ctx, keptFor)
	defer stop()
	i, j, shared, err := sharedKey(a, b)
	if err != nil || !shared {
		return err
	}
	p, err := newEnd(a, i)
	if err != nil {
		return err
	}
	q, err := newEnd(b, j)
	if err != nil {
		return err
	}
	memory, err := b.RegisterMemory(messageBytes, 0, verbs.AccessRemoteWrite)
	if err != nil {
		return err
	}
	for _, x := range [][2]*end{{p, q}, {q, p}} {
		if err := x[0].connect(x[1]); err != nil {
			return err
		}
	}
	message := make([]byte, messageBytes)
	for every(ctx, time.Second/time.Duration(rate)) {
		if err := p.qp.PostSend(verbs.SendWR{Op: verbs.OpWrite, Data: message, RKey: memory.RKey()}); err != nil {
			return err
		}
		if _, err := p.cq.Wait(1, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// tableMost is how many keys of a table are looked at.
const tableMost = 16

// sharedKey finds the first partition of which both are members, at least one a full member.
func sharedKey(a, b *verbs.Device) (i, j uint16, shared bool, err error) {
	for i := range uint16(tableMost) {
		x, err := a.QueryPKey(1, int(i))
		if err != nil {
			return 0, 0, false, err
		}
		for j := range uint16(tableMost) {
			y, err := b.QueryPKey(1, int(j))
			if err != nil {
				return 0, 0, false, err
			}
			if x.Base() != 0 && x.Base() == y.Base() && x.Base() != ib.PKeyDefaultFull.Base() && (x.IsFull() || y.IsFull()) {
				return i, j, true, nil
			}
		}
	}
	return 0, 0, false, nil
}

// end is a queue pair of a device.
type end struct {
	lid ib.LID
	qp  *verbs.QP
	cq  *verbs.CQ
}

func newEnd(d *verbs.Device, key uint16) (*end, error) {
	port, err := d.QueryPort(1)
	if err != nil {
		return nil, err
	}
	cq, err := d.CreateCQ(16)
	if err != nil {
		return nil, err
	}
	qp, err := d.CreateQP(verbs.QPInit{Type: verbs.QPTypeUC, SendCQ: cq, ReceiveCQ: cq})
	if err != nil {
		return nil, err
	}
	err = qp.Modify(verbs.QPAttr{State: verbs.StateInit, Port: 1, PKeyIndex: key}, verbs.AttrState|verbs.AttrPort|verbs.AttrPKeyIndex)
	return &end{port.LID, qp, cq}, err
}

// connect has a queue pair send to another.
func (e *end) connect(to *end) error {
	err := e.qp.Modify(verbs.QPAttr{State: verbs.StateRTR, AV: verbs.AHAttr{Port: 1, DLID: to.lid}, PathMTU: ib.MTU2048, DestQPN: to.qp.Number()},
		verbs.AttrState|verbs.AttrAV|verbs.AttrPathMTU|verbs.AttrDestQPN|verbs.AttrRQPSN)
	if err != nil {
		return err
	}
	return e.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.AttrState|verbs.AttrSQPSN)
}

// every waits for a while, and reports whether ctx goes on.
func every(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
