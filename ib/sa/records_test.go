package sa

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/vectors"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

var _ Record = (*mad.ClassPortInfo)(nil)

// codec is one record as the tests see it.
type codec struct {
	vector string // its golden packet, "" when there is none
	make   func() Record
	size   int
}

var codecs = []codec{
	{"", func() Record { return new(Notice) }, NoticeSize},
	{"SA_InformInfo", func() Record { return new(InformInfo) }, InformInfoSize},
	{"SA_NodeRecord", func() Record { return new(NodeRecord) }, NodeRecordSize},
	{"SA_PortInfoRecord", func() Record { return new(PortInfoRecord) }, PortInfoRecordSize},
	{"SA_SLtoVLMappingTableRecord", func() Record { return new(SLToVLMappingTableRecord) }, SLToVLMappingTableRecordSize},
	{"SA_SwitchInfoRecord", func() Record { return new(SwitchInfoRecord) }, SwitchInfoRecordSize},
	{"SA_LinearForwardingTableRecord", func() Record { return new(LinearForwardingTableRecord) }, LinearForwardingTableRecordSize},
	{"SA_RandomForwardingTableRecord", func() Record { return new(RandomForwardingTableRecord) }, RandomForwardingTableRecordSize},
	{"SA_MulticastForwardingTableRecord", func() Record { return new(MulticastForwardingTableRecord) }, MulticastForwardingTableRecordSize},
	{"SA_SMInfoRecord", func() Record { return new(SMInfoRecord) }, SMInfoRecordSize},
	{"SA_LinkRecord", func() Record { return new(LinkRecord) }, LinkRecordSize},
	{"SA_GUIDInfoRecord", func() Record { return new(GUIDInfoRecord) }, GUIDInfoRecordSize},
	{"SA_ServiceRecord", func() Record { return new(ServiceRecord) }, ServiceRecordSize},
	{"SA_P_KeyTableRecord", func() Record { return new(PKeyTableRecord) }, PKeyTableRecordSize},
	{"SA_PathRecord", func() Record { return new(PathRecord) }, PathRecordSize},
	{"SA_VLArbitrationTableRecord", func() Record { return new(VLArbitrationTableRecord) }, VLArbitrationTableRecordSize},
	{"SA_MCMemberRecord", func() Record { return new(MCMemberRecord) }, MCMemberRecordSize},
	{"SA_TraceRecord", func() Record { return new(TraceRecord) }, TraceRecordSize},
	{"SA_MultiPathRecord", func() Record { return new(MultiPathRecord) }, multiPathFixedSize + 2*gidSize},
	{"SA_InformInfoRecord", func() Record { return new(InformInfoRecord) }, InformInfoRecordSize},
}

// forEach runs f for every codec that has a golden packet.
func forEach(t *testing.T, f func(t *testing.T, c codec, v vectors.Vector)) {
	for _, c := range codecs {
		if c.vector == "" {
			continue
		}
		t.Run(c.vector, func(t *testing.T) {
			v, err := vectors.Load(c.vector)
			if err != nil {
				t.Fatal(err)
			}
			f(t, c, v)
		})
	}
}

func decoded(t testing.TB, c codec, data []byte) Record {
	t.Helper()
	r := c.make()
	if err := r.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	return r
}

// filled is a record with the bytes up to the next one.
func filled(record []byte) []byte {
	return append(bytes.Clone(record), make([]byte, -len(record)&7)...)
}

func saVectors(t testing.TB) []vectors.Vector {
	t.Helper()
	all, err := vectors.All()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(v vectors.Vector) bool { return !strings.HasPrefix(v.Name, "SA_") })
}

func TestVectorsCovered(t *testing.T) {
	all := saVectors(t)
	if len(all) != 20 {
		t.Errorf("%d vectors, want 20", len(all))
	}
	for _, v := range all {
		if v.Name == "SA_ClassPortInfo" {
			continue // package mad
		}
		if !slices.ContainsFunc(codecs, func(c codec) bool { return c.vector == v.Name }) {
			t.Errorf("vector %s: no codec", v.Name)
		}
	}
}

func TestVectorValues(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector) {
		r := decoded(t, c, v.Attribute)
		got := values(t, r)
		listed := map[string]bool{}
		for _, f := range v.Fields {
			if isReserved(f) {
				continue
			}
			listed[shortName(f)] = true
			value, covered := got[shortName(f)]
			if want := plainHex(f.Value); !covered {
				t.Errorf("field %s is not read", f.Name)
			} else if value != want {
				t.Errorf("%s = %s, want %s", f.Name, value, want)
			}
		}
		for name := range got {
			if !listed[name] {
				t.Errorf("field %s is not in the vector", name)
			}
		}
		if want := mad.AttributeID(v.MAD[16])<<8 | mad.AttributeID(v.MAD[17]); r.ID() != want {
			t.Errorf("ID %#x, want %#x", r.ID(), want)
		}
	})
}

func TestVectorRoundTrip(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector) {
		for _, data := range [][]byte{v.Attribute, filled(v.Attribute), v.MAD[DataOffset:]} {
			got, err := decoded(t, c, data).AppendBinary([]byte("before"))
			if want := append([]byte("before"), filled(v.Attribute)...); err != nil || !bytes.Equal(got, want) {
				t.Errorf("from %d bytes\n%x (%v), want\n%x", len(data), got, err, want)
			}
		}
		if want := int(v.MAD[44])<<8 | int(v.MAD[45]); len(filled(v.Attribute)) != 8*want {
			t.Errorf("%d bytes, the AttributeOffset of the vector is %d", len(filled(v.Attribute)), want)
		}
		if len(v.Attribute) != c.size {
			t.Errorf("size %d, want %d", c.size, len(v.Attribute))
		}
	})
}

// A flipped bit changes the field it is in and no other, and survives.
func TestBitFlips(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector) {
		before := values(t, decoded(t, c, v.Attribute))
		for bit := range 8 * c.size {
			want := fieldsAt(v, bit)
			if slices.Equal(want, []string{"SGIDCount"}) || slices.Equal(want, []string{"DGIDCount"}) {
				continue // another length: TestMultiPathCounts
			}
			flipped := bytes.Clone(v.Attribute)
			flipped[bit/8] ^= 0x80 >> (bit % 8)
			r := decoded(t, c, flipped)
			if got := changes(before, values(t, r)); !slices.Equal(got, want) {
				t.Errorf("bit %d: changed %q, want %q", bit, got, want)
			}
			if got, err := r.AppendBinary(nil); err != nil || !bytes.Equal(got, filled(flipped)) {
				t.Errorf("bit %d: encoded\n%x (%v), want\n%x", bit, got, err, flipped)
			}
		}
	})
}

// fieldsAt names the field that a bit belongs to; none for a reserved bit.
func fieldsAt(v vectors.Vector, bit int) []string {
	for _, f := range v.Fields {
		if bit >= f.Bit && bit < f.Bit+f.Width && !isReserved(f) {
			return []string{shortName(f)}
		}
	}
	return nil
}

// Every field that is narrower than its type refuses the next larger value.
// That it takes its largest one is shown by TestBitFlips.
func TestTooWide(t *testing.T) {
	tested := 0
	forEach(t, func(t *testing.T, c codec, v vectors.Vector) {
		for _, f := range v.Fields {
			r := decoded(t, c, v.Attribute)
			l, ok := leaves(t, r)[shortName(f)]
			if !ok || !l.field.CanUint() || l.field.Type().Bits() <= f.Width || l.field.Type() == reflect.TypeFor[ib.PKey]() {
				continue
			}
			tested++
			l.field.SetUint(1 << f.Width)
			b, err := r.AppendBinary([]byte("before"))
			name, _, _ := strings.Cut(shortName(f), "[")
			if strings.HasSuffix(name, "toVL") {
				name = "VLs"
			}
			if err == nil || !strings.HasPrefix(err.Error(), AttributeName(r.ID())+".") ||
				!strings.Contains(err.Error(), "."+name+":") {
				t.Errorf("%s: error %v", f.Name, err)
			}
			if string(b) != "before" {
				t.Errorf("%s: an error came with %x", f.Name, b)
			}
		}
	})
	if tested < 130 {
		t.Errorf("%d fields tested: too few", tested)
	}
}

func TestTooShort(t *testing.T) {
	for _, c := range codecs {
		whole := make([]byte, c.size)
		if c.vector == "SA_MultiPathRecord" {
			whole[15], whole[16] = 1, 1 // SGIDCount, DGIDCount
		}
		whole[0] = 1
		r := decoded(t, c, whole)
		before := values(t, r)
		for n := range c.size {
			err := r.UnmarshalBinary(bytes.Repeat([]byte{0xFF}, n))
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: %d bytes", AttributeName(r.ID()), n)) {
				t.Errorf("%T from %d bytes: error %v", r, n, err)
			}
		}
		if changed := changes(before, values(t, r)); changed != nil {
			t.Errorf("%T: assigned %q in spite of the error", r, changed)
		}
	}
}

// A decoded record does not see later changes of the input.
func TestNoAlias(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector) {
		input := bytes.Clone(v.Attribute)
		r := decoded(t, c, input)
		clear(input)
		if got, err := r.AppendBinary(nil); err != nil || !bytes.Equal(got, filled(v.Attribute)) {
			t.Errorf("after the input was cleared\n%x (%v), want\n%x", got, err, v.Attribute)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	forEach(t, func(t *testing.T, c codec, v vectors.Vector) {
		r, buf := c.make(), make([]byte, 0, 512)
		if _, lists := r.(*MultiPathRecord); lists {
			return // its lists are allocated
		}
		if n := testing.AllocsPerRun(10, func() {
			if _, err := r.AppendBinary(buf); err != nil || r.UnmarshalBinary(v.Attribute) != nil {
				t.Error("not coded")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestNotice puts a golden notice of subnet management in front of a GID.
func TestNotice(t *testing.T) {
	v, err := vectors.Load("Notice144")
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Clone(v.MAD[mad.DataOffset : mad.DataOffset+mad.DataSize])
	issuer := ib.MakeGID(ib.DefaultGIDPrefix, 0x0102_0304_0506_0708)
	data = append(data, issuer[:]...)
	var n Notice
	if err := n.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if n.IssuerGID != issuer || n.Notice.TrapNumber != smp.TrapLocalChange {
		t.Errorf("trap %d from %v, want 144 from %v", n.Notice.TrapNumber, n.IssuerGID, issuer)
	}
	if got, err := n.AppendBinary(nil); err != nil || !bytes.Equal(got, data) {
		t.Errorf("encoded\n%x (%v), want\n%x", got, err, data)
	}
	n.Notice.Type = 1 << 7
	if _, err := n.AppendBinary(nil); err == nil || err.Error() != "Notice.Notice: Notice.Type: value 0x80 does not fit 7 bits" {
		t.Errorf("error %v", err)
	}
}

func TestMultiPathCounts(t *testing.T) {
	gids := func(n int, first byte) []ib.GID {
		list := make([]ib.GID, n)
		for i := range list {
			list[i] = ib.GID{first, byte(i)}
		}
		return list
	}
	for _, counts := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {3, MultiPathGIDsPerMAD - 3}, {MultiPathGIDsMax, MultiPathGIDsMax}} {
		in := MultiPathRecord{ServiceID: 0x0123_4567_89AB_CDEF, SGIDs: gids(counts[0], 1), DGIDs: gids(counts[1], 2)}
		b, err := in.AppendBinary(nil)
		if err != nil || len(b) != 24+16*(counts[0]+counts[1]) {
			t.Fatalf("%v: %d bytes, %v", counts, len(b), err)
		}
		var out MultiPathRecord
		if err := out.UnmarshalBinary(append(b, 0xFF)); err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("%v: %+v (%v), want %+v", counts, out, err, in)
		}
		if err := out.UnmarshalBinary(b[:len(b)-1]); err == nil {
			t.Errorf("%v: no error for a byte less", counts)
		}
	}
	if MultiPathGIDsPerMAD != 11 {
		t.Errorf("%d GIDs fit a datagram, want 11", MultiPathGIDsPerMAD)
	}
	for field, r := range map[string]MultiPathRecord{
		"SGIDs": {SGIDs: gids(MultiPathGIDsMax+1, 1)},
		"DGIDs": {DGIDs: gids(MultiPathGIDsMax+1, 2)},
	} {
		if b, err := r.AppendBinary(nil); err == nil || !strings.Contains(err.Error(), field) || b != nil {
			t.Errorf("too many %s: %d bytes, %v", field, len(b), err)
		}
	}
}
