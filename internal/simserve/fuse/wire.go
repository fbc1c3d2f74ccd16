package fuse

import "encoding/binary"

// The kernel's protocol, as of version 7.23 and on; numbers are in the order of
// this machine.
const (
	protocolMajor = 7
	protocolMinor = 31 // the first with max_pages and without what came later
	oldestMinor   = 28 // max_pages

	inHeaderSize  = 40
	outHeaderSize = 16

	rootID = 1
)

// MaxTransfer is the most bytes that one read or write moves; the kernel
// splits longer ones.
const MaxTransfer = 1 << 20

const (
	pageSize = 4096
	maxPages = MaxTransfer / pageSize
	// requestSize is the room for a request: a write and its headers.
	requestSize = MaxTransfer + pageSize
)

type opcode uint32

const (
	opLookup      opcode = 1
	opForget      opcode = 2
	opGetattr     opcode = 3
	opOpen        opcode = 14
	opRead        opcode = 15
	opWrite       opcode = 16
	opStatfs      opcode = 17
	opRelease     opcode = 18
	opFlush       opcode = 25
	opInit        opcode = 26
	opOpendir     opcode = 27
	opReaddir     opcode = 28
	opReleasedir  opcode = 29
	opAccess      opcode = 34
	opInterrupt   opcode = 36
	opDestroy     opcode = 38
	opIoctl       opcode = 39
	opPoll        opcode = 40
	opBatchForget opcode = 42
)

// validSeconds is how long the kernel may keep the names and the modes of a
// tree, which do not change; what is in the files it never keeps.
const validSeconds = 3600

const (
	notifyPoll         = 1
	pollScheduleNotify = 1

	openDirectIO = 1 << 0
	openStream   = 1 << 4 // no position: a read that waits does not keep writers out

	initBigWrites = 1 << 5
	initMaxPages  = 1 << 22
)

var native = binary.NativeEndian

// request is what the kernel asks.
type request struct {
	op     opcode
	unique uint64
	node   uint64
	thread int // that asks
	body   []byte
}

// parseRequest reads the header; ok is false for what is shorter than it says.
func parseRequest(b []byte) (r request, ok bool) {
	if len(b) < inHeaderSize || int(native.Uint32(b)) > len(b) || native.Uint32(b) < inHeaderSize {
		return request{}, false
	}
	return request{
		op:     opcode(native.Uint32(b[4:])),
		unique: native.Uint64(b[8:]),
		node:   native.Uint64(b[16:]),
		thread: int(native.Uint32(b[32:])),
		body:   b[inHeaderSize:native.Uint32(b)],
	}, true
}

// u32 and u64 read a field of the body, 0 behind its end: older kernels send
// shorter bodies.
func (r *request) u32(at int) uint32 {
	if at+4 > len(r.body) {
		return 0
	}
	return native.Uint32(r.body[at:])
}

func (r *request) u64(at int) uint64 {
	if at+8 > len(r.body) {
		return 0
	}
	return native.Uint64(r.body[at:])
}

// from is what follows a fixed part of the body.
func (r *request) from(at int) []byte {
	if at > len(r.body) {
		return nil
	}
	return r.body[at:]
}

func appendHeader(b []byte, size int, errno int32, unique uint64) []byte {
	b = native.AppendUint32(b, uint32(outHeaderSize+size))
	b = native.AppendUint32(b, uint32(errno))
	return native.AppendUint64(b, unique)
}

type openOut struct {
	handle uint64
	flags  uint32
}

func (o openOut) append(b []byte) []byte {
	b = native.AppendUint64(b, o.handle)
	b = native.AppendUint32(b, o.flags)
	return native.AppendUint32(b, 0)
}

// appendInit is the answer to opInit.
func appendInit(b []byte, minor uint32) []byte {
	b = native.AppendUint32(b, protocolMajor)
	b = native.AppendUint32(b, min(minor, protocolMinor))
	b = native.AppendUint32(b, 0) // no read-ahead
	b = native.AppendUint32(b, initBigWrites|initMaxPages)
	b = native.AppendUint32(b, 0) // the kernel's limits of background requests
	b = native.AppendUint32(b, MaxTransfer)
	b = native.AppendUint32(b, 1) // ns of time stamps
	b = native.AppendUint16(b, maxPages)
	b = native.AppendUint16(b, 0)
	return append(b, make([]byte, 32)...)
}

// appendAttr describes a node: its number and its mode. Sizes are 0, as in the
// kernel's own file systems of this kind.
func appendAttr(b []byte, node uint64, mode uint32) []byte {
	b = native.AppendUint64(b, node)
	b = append(b, make([]byte, 5*8+3*4)...) // size, blocks and times
	b = native.AppendUint32(b, mode)
	b = native.AppendUint32(b, 1)        // links
	b = append(b, make([]byte, 3*4)...)  // owner, group, device number
	b = native.AppendUint32(b, pageSize) // preferred size of reads
	return native.AppendUint32(b, 0)
}

// appendEntry is the answer to opLookup.
func appendEntry(b []byte, node uint64, mode uint32) []byte {
	b = native.AppendUint64(b, node)
	b = native.AppendUint64(b, 0)            // generation
	b = native.AppendUint64(b, validSeconds) // of the name
	b = native.AppendUint64(b, validSeconds) // of the attributes
	b = native.AppendUint64(b, 0)            // and no nanoseconds
	return appendAttr(b, node, mode)
}

// appendAttrs is the answer to opGetattr.
func appendAttrs(b []byte, node uint64, mode uint32) []byte {
	b = native.AppendUint64(b, validSeconds)
	b = native.AppendUint64(b, 0)
	return appendAttr(b, node, mode)
}

// appendDirent adds an entry of a directory; next is where the one after it
// begins.
func appendDirent(b []byte, node, next uint64, mode uint32, name string) []byte {
	b = native.AppendUint64(b, node)
	b = native.AppendUint64(b, next)
	b = native.AppendUint32(b, uint32(len(name)))
	b = native.AppendUint32(b, mode>>12)
	b = append(b, name...)
	return append(b, make([]byte, -len(name)&7)...)
}
