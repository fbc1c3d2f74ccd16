package packet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/vectors"
)

// value is what a field holds, right-justified: the widest field has 128 bits.
type value [16]byte

func number(n uint64) (v value) {
	binary.BigEndian.PutUint64(v[8:], n)
	return v
}

func (v value) uint64() uint64 { return binary.BigEndian.Uint64(v[8:]) }

// accessor reads and writes one field of a header that starts at b.
type accessor struct {
	get func(b []byte) value
	set func(b []byte, v value)
}

func num[H any, T ~uint8 | ~uint16 | ~uint32 | ~uint64](view func([]byte) *H, get func(*H) T, set func(*H, T)) accessor {
	return accessor{
		get: func(b []byte) value { return number(uint64(get(view(b)))) },
		set: func(b []byte, v value) { set(view(b), T(v.uint64())) },
	}
}

func flag[H any](view func([]byte) *H, get func(*H) bool, set func(*H, bool)) accessor {
	return accessor{
		get: func(b []byte) value {
			if get(view(b)) {
				return number(1)
			}
			return value{}
		},
		set: func(b []byte, v value) { set(view(b), v.uint64()&1 != 0) },
	}
}

func gid[H any](view func([]byte) *H, get func(*H) ib.GID, set func(*H, ib.GID)) accessor {
	return accessor{
		get: func(b []byte) value { return value(get(view(b))) },
		set: func(b []byte, v value) { set(view(b), ib.GID(v)) },
	}
}

func viewLRH(b []byte) *LRH                   { return (*LRH)(b) }
func viewGRH(b []byte) *GRH                   { return (*GRH)(b) }
func viewBTH(b []byte) *BTH                   { return (*BTH)(b) }
func viewRDETH(b []byte) *RDETH               { return (*RDETH)(b) }
func viewDETH(b []byte) *DETH                 { return (*DETH)(b) }
func viewRETH(b []byte) *RETH                 { return (*RETH)(b) }
func viewAtomicETH(b []byte) *AtomicETH       { return (*AtomicETH)(b) }
func viewAETH(b []byte) *AETH                 { return (*AETH)(b) }
func viewAtomicAckETH(b []byte) *AtomicAckETH { return (*AtomicAckETH)(b) }
func viewImmDt(b []byte) *ImmDt               { return (*ImmDt)(b) }
func viewIETH(b []byte) *IETH                 { return (*IETH)(b) }
func viewRWH(b []byte) *RWH                   { return (*RWH)(b) }

// accessors holds every field under the names of the golden packets.
var accessors = map[string]map[string]accessor{
	"LRH": {
		"VL":     num(viewLRH, (*LRH).VL, (*LRH).SetVL),
		"LVer":   num(viewLRH, (*LRH).LVer, (*LRH).SetLVer),
		"SL":     num(viewLRH, (*LRH).SL, (*LRH).SetSL),
		"LNH":    num(viewLRH, (*LRH).LNH, (*LRH).SetLNH),
		"DLID":   num(viewLRH, (*LRH).DLID, (*LRH).SetDLID),
		"PktLen": num(viewLRH, (*LRH).PktLen, (*LRH).SetPktLen),
		"SLID":   num(viewLRH, (*LRH).SLID, (*LRH).SetSLID),
	},
	"GRH": {
		"IPVer":     num(viewGRH, (*GRH).IPVer, (*GRH).SetIPVer),
		"TClass":    num(viewGRH, (*GRH).TClass, (*GRH).SetTClass),
		"FlowLabel": num(viewGRH, (*GRH).FlowLabel, (*GRH).SetFlowLabel),
		"PayLen":    num(viewGRH, (*GRH).PayLen, (*GRH).SetPayLen),
		"NxtHdr":    num(viewGRH, (*GRH).NxtHdr, (*GRH).SetNxtHdr),
		"HopLmt":    num(viewGRH, (*GRH).HopLmt, (*GRH).SetHopLmt),
		"SGID":      gid(viewGRH, (*GRH).SGID, (*GRH).SetSGID),
		"DGID":      gid(viewGRH, (*GRH).DGID, (*GRH).SetDGID),
	},
	"BTH": {
		"OpCode": num(viewBTH, (*BTH).OpCode, (*BTH).SetOpCode),
		"SE":     flag(viewBTH, (*BTH).SolicitedEvent, (*BTH).SetSolicitedEvent),
		"M":      flag(viewBTH, (*BTH).MigReq, (*BTH).SetMigReq),
		"PadCnt": num(viewBTH, (*BTH).PadCnt, (*BTH).SetPadCnt),
		"TVer":   num(viewBTH, (*BTH).TVer, (*BTH).SetTVer),
		"P_Key":  num(viewBTH, (*BTH).PKey, (*BTH).SetPKey),
		"FECN":   flag(viewBTH, (*BTH).FECN, (*BTH).SetFECN),
		"BECN":   flag(viewBTH, (*BTH).BECN, (*BTH).SetBECN),
		"DestQP": num(viewBTH, (*BTH).DestQP, (*BTH).SetDestQP),
		"A":      flag(viewBTH, (*BTH).AckReq, (*BTH).SetAckReq),
		"PSN":    num(viewBTH, (*BTH).PSN, (*BTH).SetPSN),
	},
	"RDETH": {
		"EEContext": num(viewRDETH, (*RDETH).EEContext, (*RDETH).SetEEContext),
	},
	"DETH": {
		"Q_Key": num(viewDETH, (*DETH).QKey, (*DETH).SetQKey),
		"SrcQP": num(viewDETH, (*DETH).SrcQP, (*DETH).SetSrcQP),
	},
	"RETH": {
		"VA":     num(viewRETH, (*RETH).VA, (*RETH).SetVA),
		"R_Key":  num(viewRETH, (*RETH).RKey, (*RETH).SetRKey),
		"DMALen": num(viewRETH, (*RETH).DMALen, (*RETH).SetDMALen),
	},
	"AtomicETH": {
		"VA":           num(viewAtomicETH, (*AtomicETH).VA, (*AtomicETH).SetVA),
		"R_Key":        num(viewAtomicETH, (*AtomicETH).RKey, (*AtomicETH).SetRKey),
		"SwapDt/AddDt": num(viewAtomicETH, (*AtomicETH).SwapAddDt, (*AtomicETH).SetSwapAddDt),
		"CmpDt":        num(viewAtomicETH, (*AtomicETH).CmpDt, (*AtomicETH).SetCmpDt),
	},
	"AETH": {
		"Syndrome": num(viewAETH, (*AETH).Syndrome, (*AETH).SetSyndrome),
		"MSN":      num(viewAETH, (*AETH).MSN, (*AETH).SetMSN),
	},
	"AtomicAckETH": {
		"OrigRemDt": num(viewAtomicAckETH, (*AtomicAckETH).OrigRemDt, (*AtomicAckETH).SetOrigRemDt),
	},
	"ImmDt": {"ImmDt": num(viewImmDt, (*ImmDt).Value, (*ImmDt).SetValue)},
	"IETH":  {"R_Key": num(viewIETH, (*IETH).RKey, (*IETH).SetRKey)},
	"RWH":   {"EtherType": num(viewRWH, (*RWH).EtherType, (*RWH).SetEtherType)},
}

var sizeOf = map[string]int{
	"LRH": LRHSize, "GRH": GRHSize, "BTH": BTHSize, "RDETH": RDETHSize, "DETH": DETHSize,
	"RETH": RETHSize, "AtomicETH": AtomicETHSize, "AETH": AETHSize, "AtomicAckETH": AtomicAckETHSize,
	"ImmDt": ImmDtSize, "IETH": IETHSize, "RWH": RWHSize,
}

func isReserved(f vectors.Field) bool { return strings.HasPrefix(f.Name, "Reserved") }

func fieldValue(t testing.TB, f vectors.Field) (v value) {
	t.Helper()
	b, err := f.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	copy(v[len(v)-len(b):], b)
	return v
}

// vectorsWhere loads the golden packets that pass keep.
func vectorsWhere(t testing.TB, keep func(vectors.Vector) bool) []vectors.Vector {
	t.Helper()
	all, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(v vectors.Vector) bool { return !keep(v) })
}

func allVectors(t testing.TB) []vectors.Vector {
	return vectorsWhere(t, func(vectors.Vector) bool { return true })
}

// headerVectors are the golden packets that list the fields of their headers.
func headerVectors(t testing.TB) []vectors.Vector {
	t.Helper()
	vs := vectorsWhere(t, func(v vectors.Vector) bool { return v.Headers != nil })
	if len(vs) != 14 {
		t.Fatalf("%d vectors of headers, want 14", len(vs))
	}
	return vs
}

// headerFields gives the fields of each header once, from the first golden
// packet that has it.
func headerFields(t testing.TB) map[string][]vectors.Field {
	fields := map[string][]vectors.Field{}
	for _, v := range headerVectors(t) {
		inThis := map[string][]vectors.Field{}
		for _, f := range v.Fields {
			inThis[f.Header] = append(inThis[f.Header], f)
		}
		for header, fs := range inThis {
			if fields[header] == nil {
				fields[header] = fs
			}
		}
	}
	if len(fields) != len(accessors) {
		t.Fatalf("vectors list %d headers, want %d", len(fields), len(accessors))
	}
	return fields
}

func TestFieldsOfVectors(t *testing.T) {
	for _, v := range headerVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			rebuilt := map[string][]byte{}
			for _, f := range v.Fields {
				header := v.Packet[f.Byte:][:sizeOf[f.Header]]
				if rebuilt[f.Header] == nil {
					rebuilt[f.Header] = make([]byte, len(header))
				}
				if isReserved(f) {
					continue
				}
				a, ok := accessors[f.Header][f.Name]
				if !ok {
					t.Errorf("%s.%s has no accessor", f.Header, f.Name)
					continue
				}
				want := fieldValue(t, f)
				if got := a.get(header); got != want {
					t.Errorf("%s.%s = %x, want %x", f.Header, f.Name, got, want)
				}
				a.set(rebuilt[f.Header], want)
			}
			for _, f := range v.Fields {
				if want := v.Packet[f.Byte:][:sizeOf[f.Header]]; !bytes.Equal(rebuilt[f.Header], want) {
					t.Fatalf("%s rebuilt as %x, want %x", f.Header, rebuilt[f.Header], want)
				}
			}
		})
	}
}

// TestBitFlips flips every bit of every header, over ones and over zeros: the
// field that owns the bit shows it and no other does, and writing that value
// writes that bit and no other.
func TestBitFlips(t *testing.T) {
	for header, fields := range headerFields(t) {
		for _, fill := range []byte{0x00, 0xFF, 0xA5} {
			t.Run(fmt.Sprintf("%s/%02x", header, fill), func(t *testing.T) {
				before := bytes.Repeat([]byte{fill}, sizeOf[header])
				for i := range 8 * len(before) {
					flipped := bytes.Clone(before)
					flipped[i/8] ^= 0x80 >> (i % 8)
					checkFlip(t, header, fields, i, before, flipped)
				}
			})
		}
	}
}

func checkFlip(t *testing.T, header string, fields []vectors.Field, i int, before, flipped []byte) {
	owned := false
	for _, f := range fields {
		inside := i >= f.Bit && i < f.Bit+f.Width
		owned = owned || inside
		if isReserved(f) {
			continue
		}
		a := accessors[header][f.Name]
		want := a.get(before)
		if inside {
			fromEnd := f.Bit + f.Width - 1 - i
			want[len(want)-1-fromEnd/8] ^= 1 << (fromEnd % 8)
		}
		if got := a.get(flipped); got != want {
			t.Errorf("bit %d flipped: %s.%s = %x, want %x", i, header, f.Name, got, want)
		}
		if inside {
			written := bytes.Clone(before)
			a.set(written, want)
			if !bytes.Equal(written, flipped) {
				t.Errorf("%s.%s set to %x: %x, want %x", header, f.Name, want, written, flipped)
			}
		}
	}
	if !owned {
		t.Errorf("bit %d of %s belongs to no field of the vectors", i, header)
	}
}

// TestSettersKeepToTheirField writes ones that are too wide into every field.
func TestSettersKeepToTheirField(t *testing.T) {
	ones := value(bytes.Repeat([]byte{0xFF}, 16))
	for header, fields := range headerFields(t) {
		for _, f := range fields {
			if isReserved(f) {
				continue
			}
			want := make([]byte, sizeOf[header])
			for i := f.Bit; i < f.Bit+f.Width; i++ {
				want[i/8] |= 0x80 >> (i % 8)
			}
			got := make([]byte, sizeOf[header])
			accessors[header][f.Name].set(got, ones)
			if !bytes.Equal(got, want) {
				t.Errorf("%s.%s set to ones: %x, want %x", header, f.Name, got, want)
			}
		}
	}
}

// TestMADVectorHeaders checks the headers that carry the golden datagrams,
// which those vectors do not list field by field.
func TestMADVectorHeaders(t *testing.T) {
	vs := vectorsWhere(t, func(v vectors.Vector) bool { return v.MAD != nil })
	if len(vs) != 56 {
		t.Fatalf("%d vectors of datagrams, want 56", len(vs))
	}
	for _, v := range vs {
		t.Run(v.Name, func(t *testing.T) {
			got, err := Parse(v.Packet)
			if err != nil {
				t.Fatal(err)
			}
			vl, pkey, qp, qkey := uint64(15), uint64(0xFFFF), uint64(0), uint64(0)
			if v.MAD[1]&0x7F != 1 {
				vl, pkey, qp, qkey = 0, 0x8123, 1, 0x8001_0000
			}
			want := map[string]map[string]uint64{
				"LRH": {"VL": vl, "LVer": 0, "SL": 0, "LNH": 2, "DLID": 0x123, "PktLen": 72, "SLID": 0x456},
				"BTH": {
					"OpCode": 0x64, "SE": 0, "M": 0, "PadCnt": 0, "TVer": 0, "P_Key": pkey,
					"FECN": 0, "BECN": 0, "DestQP": qp, "A": 0, "PSN": 0xA1B2C3,
				},
				"DETH": {"Q_Key": qkey, "SrcQP": qp},
			}
			raw := map[string][]byte{"LRH": got.LRH[:], "BTH": got.BTH[:], "DETH": got.DETH[:]}
			for header, fields := range want {
				rebuilt := make([]byte, sizeOf[header])
				for name, n := range fields {
					if g := accessors[header][name].get(raw[header]); g != number(n) {
						t.Errorf("%s.%s = %x, want %x", header, name, g, n)
					}
					accessors[header][name].set(rebuilt, number(n))
				}
				if !bytes.Equal(rebuilt, raw[header]) {
					t.Errorf("%s rebuilt as %x, want %x", header, rebuilt, raw[header])
				}
			}
			if !bytes.Equal(got.Payload, v.MAD) {
				t.Errorf("payload is not the datagram")
			}
		})
	}
}

func TestSyndrome(t *testing.T) {
	for _, kind := range []SyndromeKind{SyndromeACK, SyndromeRNRNAK, SyndromeNAK} {
		for value := range uint8(32) {
			if s := MakeSyndrome(kind, value); s.Kind() != kind || s.Value() != value || s&0x80 != 0 {
				t.Errorf("MakeSyndrome(%d, %d) = 0x%02x: kind %d, value %d", kind, value, uint8(s), s.Kind(), s.Value())
			}
		}
	}
	if got := MakeSyndrome(SyndromeNAK, NAKRemoteAccess); got != 0x62 {
		t.Errorf("NAK for remote access = 0x%02x, want 0x62", uint8(got))
	}
}
