package endpoint

import "fmt"

// Access is what a remote peer may do with a memory region.
type Access uint8

// The kinds of access.
const (
	AccessRemoteWrite Access = 1 << iota
	AccessRemoteRead
)

// Domain is a protection domain: a queue pair, or an EE context, lets its peer at
// memory of its own domain alone, and an EE context at queue pairs of its own. A
// device has as many as its consumers; who names none is in 0.
type Domain uint32

// Memory is a region that peers reach by RDMA with its R_Key.
type Memory struct {
	d      *Device
	domain Domain
	rkey   uint32
	va     uint64 // of the first byte
	bytes  []byte
	access Access
}

// RegisterMemory makes bytes reachable for peers, the first of them at address
// va. The device reads and writes them while packets are sent and received. They
// are in domain 0.
func (d *Device) RegisterMemory(bytes []byte, va uint64, access Access) (*Memory, error) {
	return d.RegisterMemoryIn(0, bytes, va, access)
}

// RegisterMemoryIn is RegisterMemory for a domain.
func (d *Device) RegisterMemoryIn(domain Domain, bytes []byte, va uint64, access Access) (*Memory, error) {
	switch {
	case len(d.memory) >= MaxMemoryRegions:
		return nil, fmt.Errorf("memory region: the device has %d, the most it can have", MaxMemoryRegions)
	case va+uint64(len(bytes)) < va:
		return nil, fmt.Errorf("memory region: %d bytes at 0x%x pass the end of the address space", len(bytes), va)
	}
	for d.lastRKey++; d.memory[d.lastRKey] != nil; d.lastRKey++ {
	}
	m := &Memory{d: d, domain: domain, rkey: d.lastRKey, va: va, bytes: bytes, access: access}
	d.memory[m.rkey] = m
	return m, nil
}

// RKey is what a peer names the region by.
func (m *Memory) RKey() uint32 { return m.rkey }

// Deregister takes the region from the peers. What was asked of it before is
// still done.
func (m *Memory) Deregister() { delete(m.d.memory, m.rkey) }

// reach is what peers reach of a device's memory, for connections of a domain.
type reach struct {
	*Device
	domain Domain
}

// Window is the part of a region that a request asks for.
func (d reach) Window(rkey uint32, va uint64, size uint32, write bool) ([]byte, bool) {
	if size == 0 {
		return nil, true // no region is touched, whatever it is called
	}
	need := AccessRemoteRead
	if write {
		need = AccessRemoteWrite
	}
	m := d.memory[rkey]
	if m == nil || m.domain != d.domain || m.access&need == 0 || va < m.va {
		return nil, false
	}
	from, length := va-m.va, uint64(len(m.bytes))
	if from > length || uint64(size) > length-from {
		return nil, false
	}
	end := from + uint64(size)
	return m.bytes[from:end:end], true
}
