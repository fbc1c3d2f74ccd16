package mastership_test

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// Two worlds are one state if all that can follow is the same. So deadlines count from
// now. An ActCount is only ever compared with another of the same manager: it counts by its
// place among those that somebody remembers.

// leaf is a field of mastership.Election, or of a struct in it, that has no fields.
type leaf struct {
	offset uintptr
	size   uintptr
	kind   leafKind
}

type leafKind uint8

const (
	plain    leafKind = iota
	deadline          // a time
	count             // the manager's own ActCount
	about             // an SMInfo
	absent            // a slice that is nil here
	text
)

// leaves are all fields of the engine but its configuration, whatever they are called, so
// that a field that comes to it is part of the state.
var leaves = leavesOf(reflect.TypeFor[mastership.Election](), 0, "")

func leavesOf(t reflect.Type, from uintptr, path string) (out []leaf) {
	for i := range t.NumField() {
		f := t.Field(i)
		at, where := from+f.Offset, path+"."+f.Name
		l := leaf{offset: at, size: f.Type.Size()}
		switch {
		case f.Type == reflect.TypeFor[mastership.ElectionConfig]():
			continue // it is the same for as long as the manager lives
		case f.Type == reflect.TypeFor[smp.SMInfo]():
			l.kind = about
		case f.Type == reflect.TypeFor[time.Duration]():
			l.kind = deadline
		case where == ".actCount":
			l.kind = count
		case f.Type.Kind() == reflect.Struct:
			out = append(out, leavesOf(f.Type, at, where)...)
			continue
		case f.Type.Kind() == reflect.Slice:
			l.kind = absent
		case f.Type.Kind() == reflect.String:
			l.kind = text
		case f.Type.Kind() == reflect.Bool || f.Type.Kind() >= reflect.Int && f.Type.Kind() <= reflect.Uint64:
		default:
			panic(fmt.Sprintf("mastership.Election%s is of a kind that the search does not know: %v", where, f.Type))
		}
		out = append(out, l)
	}
	return out
}

// eachInfo calls f with every SMInfo that a world holds.
func (w *world) eachInfo(f func(*smp.SMInfo)) {
	for i := range w.mail {
		f(&w.mail[i].info)
	}
	for n := range w.kinds {
		x := &w.nodes[n]
		for i := range x.got {
			f(&x.got[i])
		}
		for _, l := range leaves {
			if l.kind == about {
				f((*smp.SMInfo)(unsafe.Add(unsafe.Pointer(&x.engine), l.offset)))
			}
		}
	}
}

func (x *node) acts() uint32 {
	if x.kind == openSM {
		return x.other.acts
	}
	i := slices.IndexFunc(leaves, func(l leaf) bool { return l.kind == count })
	return *(*uint32)(unsafe.Add(unsafe.Pointer(&x.engine), leaves[i].offset))
}

// counts are, for each manager, the ActCounts that somebody remembers, in order.
func (w *world) counts() (out [most][]uint32) {
	for n := range w.kinds {
		out[n] = append(make([]uint32, 0, 8), w.nodes[n].acts())
	}
	w.eachInfo(func(info *smp.SMInfo) {
		if n := nodeOf(info.GUID); n >= 0 && n < most && !slices.Contains(out[n], info.ActCount) {
			out[n] = append(out[n], info.ActCount)
		}
	})
	for n := range out {
		slices.Sort(out[n])
	}
	return out
}

// place is where an ActCount stands among those of its manager.
func place(counts *[most][]uint32, g ib.PortGUID, acts uint32) byte {
	n := nodeOf(g)
	if n < 0 || n >= most {
		return 0
	}
	return byte(slices.Index(counts[n], acts))
}

func putInfo(b []byte, counts *[most][]uint32, info *smp.SMInfo) []byte {
	return append(b, byte(info.GUID), byte(info.SMKey), info.Priority<<4|byte(info.SMState), place(counts, info.GUID, info.ActCount))
}

func flags(bits ...bool) (out byte) {
	for _, b := range bits {
		out <<= 1
		if b {
			out |= 1
		}
	}
	return out
}

// sortKey orders packets, ActCounts apart.
func (p *packet) sortKey() []byte {
	return []byte{byte(p.what), byte(p.of), p.from, p.to, byte(p.control), byte(p.status), flags(p.late, p.orphan), byte(p.epoch), byte(p.after),
		byte(p.info.GUID), byte(p.info.SMKey), p.info.Priority, byte(p.info.SMState), byte(p.info.ActCount >> 24), byte(p.info.ActCount >> 16), byte(p.info.ActCount >> 8), byte(p.info.ActCount)}
}

// bytes write the whole state down.
func (w *world) bytes(b []byte) []byte {
	w.tidy()
	counts := w.counts()
	l := &w.left
	b = append(b, flags(w.calm, w.whole, w.epoch == 0, w.planned), byte(w.writer),
		l.lose, l.double, l.delay, l.kill, l.start, l.pause, l.cut, l.forge, l.commit, l.order)
	for n := range w.kinds {
		x := &w.nodes[n]
		b = append(b, flags(x.alive, x.paused, x.on, x.want, x.again, x.writes, x.shares, x.service.told),
			x.prio, w.cuts[n], x.asking, w.relative(x.round), byte(x.service.state))
		if x.service.state != notMaster {
			b = append(b, byte(w.epoch-x.service.epoch), byte(w.last-x.service.after), flags(x.service.again))
		}
		for i := range x.got {
			b = putInfo(b, &counts, &x.got[i])
		}
		if x.kind == openSM {
			o := &x.other
			b = append(b, byte(o.state), flags(o.watched, o.answered), o.watch, o.failed, w.relative(o.next), place(&counts, guid(n), o.acts))
		}
		if x.kind == ours && x.alive {
			b = w.engineBytes(b, n, &counts)
		}
	}
	for i := range w.mail {
		p := &w.mail[i]
		b = append(b, byte(p.what), byte(p.of), p.from, p.to, byte(p.control), byte(p.status), flags(p.late, p.orphan), 0, 0)
		if p.what == toCommit {
			b[len(b)-2], b[len(b)-1] = byte(w.epoch-p.epoch), byte(w.last-p.after)
		}
		b = putInfo(b, &counts, &p.info)
	}
	return b
}

func (w *world) engineBytes(b []byte, n int, counts *[most][]uint32) []byte {
	e := unsafe.Pointer(&w.nodes[n].engine)
	for _, l := range leaves {
		f := unsafe.Add(e, l.offset)
		switch l.kind {
		case deadline:
			b = append(b, w.relative(*(*time.Duration)(f)))
		case count:
			b = append(b, place(counts, guid(n), *(*uint32)(f)))
		case about:
			b = putInfo(b, counts, (*smp.SMInfo)(f))
		case absent:
			if *(*unsafe.Pointer)(f) != nil {
				panic("a slice in mastership.Election that the search does not know")
			}
		case text:
			b = append(append(b, *(*string)(f)...), 0)
		default:
			b = append(b, unsafe.Slice((*byte)(f), l.size)...)
		}
	}
	return b
}

// key is a state in short. Two different ones have the same with a chance of about one in
// 2^128 for each pair.
type key [16]byte

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (w *world) key(scratch *[]byte) (k key) {
	*scratch = w.bytes((*scratch)[:0])
	binary.LittleEndian.PutUint64(k[:], maphash.Bytes(seeds[0], *scratch))
	binary.LittleEndian.PutUint64(k[8:], maphash.Bytes(seeds[1], *scratch))
	return k
}
