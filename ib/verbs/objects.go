package verbs

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// object is something that a device was asked to make.
type object struct {
	d      *Device
	handle uint32
}

func (o object) end(c Call) error {
	_, err := o.d.call(Request{Call: c, Object: o.handle})
	return err
}

// CQ is a completion queue.
type CQ struct{ object }

// CreateCQ makes a completion queue for depth completions, 1 to MaxCQDepth.
func (d *Device) CreateCQ(depth int) (*CQ, error) {
	a, err := d.call(Request{Call: CallCreateCQ, Count: depth})
	if err != nil {
		return nil, err
	}
	return &CQ{object{d, a.Object}}, nil
}

// Poll takes the oldest completions, at most max of them. Fewer may come when they
// hold many bytes.
func (c *CQ) Poll(max int) ([]WC, error) { return c.Wait(max, 0) }

// Wait is Poll after waiting for a completion, no longer than limit. The time is
// the clock's on a served fabric, and the fabric's own on one inside the program.
func (c *CQ) Wait(max int, limit time.Duration) ([]WC, error) {
	a, err := c.d.call(Request{Call: CallPoll, Object: c.handle, Count: max, Wait: int64(limit)})
	if err != nil {
		return nil, err
	}
	return a.WCs, nil
}

// Destroy ends the queue. It returns ErrBusy if a queue pair has it.
func (c *CQ) Destroy() error { return c.end(CallDestroyCQ) }

// AH is an address handle.
type AH struct{ object }

// CreateAH makes an address handle: the way to another port, for datagrams.
func (d *Device) CreateAH(a AHAttr) (*AH, error) {
	answer, err := d.call(Request{Call: CallCreateAH, Address: &a})
	if err != nil {
		return nil, err
	}
	return &AH{object{d, answer.Object}}, nil
}

// Destroy ends the handle. Requests that were posted with it go on.
func (a *AH) Destroy() error { return a.end(CallDestroyAH) }

// Memory is a memory region of the device, which peers reach by RDMA.
type Memory struct {
	object
	rkey uint32
}

// RegisterMemory makes a region of size bytes that peers name by RKey and the
// address of a byte; the first has address va. They may do what access says.
func (d *Device) RegisterMemory(size int, va uint64, access Access) (*Memory, error) {
	a, err := d.call(Request{Call: CallRegister, Count: size, VirtualAddress: va, Access: access})
	if err != nil {
		return nil, err
	}
	return &Memory{object{d, a.Object}, a.RKey}, nil
}

// RKey is what a peer names the region by.
func (m *Memory) RKey() uint32 { return m.rkey }

// Read reads n bytes from offset on, at most MaxMessage.
func (m *Memory) Read(offset, n int) ([]byte, error) {
	a, err := m.d.call(Request{Call: CallReadMemory, Object: m.handle, Index: offset, Count: n})
	if err != nil {
		return nil, err
	}
	return a.Data, nil
}

// Write writes bytes from offset on, at most MaxMessage.
func (m *Memory) Write(offset int, bytes []byte) error {
	_, err := m.d.call(Request{Call: CallWriteMemory, Object: m.handle, Index: offset, Data: bytes})
	return err
}

// Deregister takes the region from the peers.
func (m *Memory) Deregister() error { return m.end(CallDeregister) }

// MulticastGroup is the result of a join.
type MulticastGroup struct {
	MGID     ib.GID
	MLID     ib.LID
	QKey     ib.QKey
	PKey     ib.PKey
	MTU      ib.MTU
	SL       ib.SL
	HopLimit uint8
}

// JoinMulticast asks the subnet's administration to let port n send to, and
// receive of, a multicast group, as a member of the partition that entry index of
// its P_Key table names. The group has to exist. No answer within limit is
// ErrTimeout. A queue pair receives once it is attached.
func (d *Device) JoinMulticast(n ib.PortNum, index uint16, mgid ib.GID, limit time.Duration) (*MulticastGroup, error) {
	a, err := d.call(Request{Call: CallJoin, Port: n, Index: int(index), Address: &AHAttr{DGID: mgid}, Wait: int64(limit)})
	if err != nil {
		return nil, err
	}
	if a.Group == nil {
		return nil, fmt.Errorf("join: an answer without a group: %w", ErrProtocol)
	}
	return a.Group, nil
}

// LeaveMulticast ends JoinMulticast.
func (d *Device) LeaveMulticast(n ib.PortNum, index uint16, mgid ib.GID, limit time.Duration) error {
	_, err := d.call(Request{Call: CallLeave, Port: n, Index: int(index), Address: &AHAttr{DGID: mgid}, Wait: int64(limit)})
	return err
}
