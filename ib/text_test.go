package ib

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
)

// values has one of every type of this package.
var values = []any{
	LID(0xC001), LMC(3), NodeGUID(1), PortGUID(0xFFFF_FFFF_FFFF_FFFF), GID{0: 0xFE, 1: 0x80, 15: 7},
	PKey(0x8001), PKeyBase(0x7FFF), QKey(0x8001_0000), MKey(5), SMKey(0xFEDC_BA98_7654_3210), QPN(0xFF_FFFF),
	PortNum(254), SL(15), VL(14), MTU2048, Rate(10), TimeValue(18), NodeSwitch,
}

// Every exported type of the package that is one value is in values: who adds one gives it a
// text. A structure has no text of its own.
func TestEveryTypeHasText(t *testing.T) {
	have := map[string]bool{}
	for _, v := range values {
		have[reflect.TypeOf(v).Name()] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	types := 0
	for _, name := range files {
		if !strings.HasSuffix(name.Name(), ".go") || strings.HasSuffix(name.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Name.IsExported() && !isStruct(s) {
				if types++; !have[s.Name.Name] {
					t.Errorf("%s has no text, or no test of it here", s.Name.Name)
				}
			}
			return true
		})
	}
	if types != len(values) {
		t.Errorf("%d types, %d values of them here", types, len(values))
	}
}

func isStruct(s *ast.TypeSpec) bool {
	_, is := s.Type.(*ast.StructType)
	return is
}

// What a value prints it reads again, as text, in JSON and as a key of a map.
func TestThereAndBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, v := range values {
		for range 300 {
			back := reflect.New(reflect.TypeOf(v))
			text, err := v.(encoding.TextMarshaler).MarshalText()
			if err != nil {
				t.Fatalf("%T: %v", v, err)
			}
			if err := back.Interface().(encoding.TextUnmarshaler).UnmarshalText(text); err != nil || back.Elem().Interface() != v {
				t.Fatalf("%T %q comes back as %v, %v", v, text, back.Elem(), err)
			}
			document, err := json.Marshal(v)
			back.Elem().SetZero()
			if err == nil {
				err = json.Unmarshal(document, back.Interface())
			}
			if err != nil || back.Elem().Interface() != v {
				t.Fatalf("%T %s comes back as %v, %v", v, document, back.Elem(), err)
			}
			keyed := reflect.MakeMap(reflect.MapOf(reflect.TypeOf(v), reflect.TypeFor[bool]()))
			keyed.SetMapIndex(reflect.ValueOf(v), reflect.ValueOf(true))
			document, err = json.Marshal(keyed.Interface())
			read := reflect.New(keyed.Type())
			if err == nil {
				err = json.Unmarshal(document, read.Interface())
			}
			if err != nil || !reflect.DeepEqual(read.Elem().Interface(), keyed.Interface()) {
				t.Fatalf("%T: %s comes back as %v, %v", v, document, read.Elem(), err)
			}
			v = another(r, v)
		}
	}
}

// another is a random value of the type of v, inside its range.
func another(r *rand.Rand, v any) any {
	to := reflect.New(reflect.TypeOf(v)).Elem()
	switch v.(type) {
	case GID:
		g := GID{}
		for i := range g {
			g[i] = byte(r.Uint32() & r.Uint32() & r.Uint32())
		}
		return g
	case LMC:
		to.SetUint(r.Uint64N(8))
	case SL, VL:
		to.SetUint(r.Uint64N(16))
	case TimeValue:
		to.SetUint(r.Uint64N(32))
	case QPN:
		to.SetUint(r.Uint64N(1 << 24))
	case PKeyBase:
		to.SetUint(1 + r.Uint64N(0x7FFF))
	default:
		to.SetUint(r.Uint64() >> (64 - to.Type().Bits()))
	}
	return to.Interface()
}

// JSON has numbers where they are plain numbers.
func TestJSONForms(t *testing.T) {
	for want, v := range map[string]any{
		"17": LID(17), "7": LMC(7), "255": PortNone, "15": SL(15), "14": VL(14), "16777215": QPMulticast, "31": TimeValue(31),
		`"0x80010000"`: QKeyGSI, `"0x0000000000000005"`: MKey(5), `"0x0000000000000001"`: SMKey(1), `"fe80::7"`: GID{0: 0xFE, 1: 0x80, 15: 7},
		`"2048"`: MTU2048, `"2.5"`: Rate(2), `"CA"`: NodeCA, `"invalid MTU code 0"`: MTU(0), `"invalid rate code 1"`: Rate(1),
		`"unknown node type 9"`: NodeType(9),
	} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%T: %s, %v; want %s", v, got, err, want)
		}
	}
	lid := LID(4)
	if err := json.Unmarshal([]byte("null"), &lid); err != nil || lid != 4 {
		t.Errorf("null makes a LID %v, %v", lid, err)
	}
}

// What is no value is refused and changes nothing.
func TestBadText(t *testing.T) {
	for _, x := range []struct {
		of   any
		text string
	}{
		{LID(1), "65536"}, {LID(1), ""}, {LID(1), "-1"}, {LMC(1), "8"}, {PortNum(1), "256"}, {SL(1), "16"}, {VL(1), "16"},
		{QPN(1), "0x1000000"}, {TimeValue(1), "32"}, {QKey(1), "0x100000000"}, {MKey(1), "0x10000000000000000"}, {SMKey(1), "key"},
		{GID{1}, "1.2.3.4"}, {GID{1}, "fe80::1%ib0"}, {MTU2048, "2049"}, {MTU2048, "4"}, {Rate(3), "3"}, {NodeCA, "hub"}, {NodeCA, ""},
		{NodeGUID(1), "0x10000000000000000"}, {PortGUID(1), "x"}, {PKey(1), "0x10000"}, {PKeyBase(1), "0x8000"},
	} {
		to := reflect.New(reflect.TypeOf(x.of))
		to.Elem().Set(reflect.ValueOf(x.of))
		err := to.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(x.text))
		if err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%T %q: %v", x.of, x.text, err)
		}
		if to.Elem().Interface() != x.of {
			t.Errorf("%T %q: it was changed to %v", x.of, x.text, to.Elem())
		}
	}
}
