package policy

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// whole is a policy in which every field says something.
func whole() *Policy {
	s := DefaultSettings()
	at := Pos{1, 2}
	by := Selector{Kind: SelectPlace, GUID: 4, At: Place{Switch: 5, Name: "leaf", Port: 6}, Text: "x"}
	group := MulticastGroup{MGID: ib.GID{1}, MTU: 2, Rate: 3, SL: 4, QKey: 5, TClass: 6, FlowLabel: 7, Pos: at}
	s.Levels = []Level{{SL: 1, Share: 2}}
	s.VLArbHigh = []smp.VLArbitrationEntry{{VL: 1, Weight: 2}}
	fill(reflect.ValueOf(&s).Elem())
	return &Policy{
		Default: Limited, AllowBoth: true, AllowRaw: true, TrustDescriptions: true,
		Trusted: []TrustedPorts{{by, at}}, MayBeAbsent: true, AbsentWarns: true, Absentees: map[Selector]bool{by: true},
		Apart: []GUIDRange{{1, 2}}, Source: "file", Warnings: []Fault{{at, "a", "b"}},
		Groups:     []Group{{"group", []Selector{by}, []Pos{at}, true, at}},
		Partitions: []Partition{{"part", 7, 8, "service", "tenant", 3, []ServiceLevel{{observed.ServiceRange{First: 1, Last: 2, SL: 3}, at}}, 4, []MulticastGroup{group}, []Member{{by, Full, true, at}}, true, true, at}},
		Services:   []Service{{Name: "service"}},
		Aliases:    []PortAliases{{1, []ib.PortGUID{2}, at}},
		Settings:   &s, Links: []LinkLimit{{by.At, 1, 2, at}},
	}
}

// fill gives every field a value other than zero.
func fill(v reflect.Value) {
	each(v, "", func(_ string, v reflect.Value) {
		if v.IsZero() {
			change(v)
		}
	})
}

// each calls f with every value within v that has no parts.
func each(v reflect.Value, at string, f func(at string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			each(v.Field(i), at+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			each(v.Index(i), fmt.Sprintf("%s[%d]", at, i), f)
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		each(v.Elem(), at, f)
	case reflect.Map:
	default:
		f(at, v)
	}
}

func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "z")
	case reflect.Int:
		v.SetInt(v.Int() + 1)
	default:
		v.SetUint(v.Uint() ^ 1)
	}
}

// meansNothing are the fields that say nothing of what is given to whom: places in the file,
// what the reader noted, and what another field says too.
var meansNothing = map[string]bool{
	".Source": true, ".Partitions[0].From": true, ".Partitions[0].Immutable": true, ".Services[0].Name": true,
	".Warnings[0].Found": true, ".Warnings[0].Expected": true,
}

// Every field of a policy is in its digest, those that are added too, unless it means nothing.
func TestDigestHasEveryField(t *testing.T) {
	seen := map[[32]byte]string{whole().Digest(nil): "as it is"}
	var names []string
	each(reflect.ValueOf(whole()).Elem(), "", func(at string, v reflect.Value) {
		if v.IsZero() && !isOf(at, ".Services") && !isOf(at, ".Partitions[0].Multicast[0].MGID[") {
			t.Errorf("%s says nothing here", at)
		}
		names = append(names, at)
	})
	for _, name := range names {
		p := whole()
		each(reflect.ValueOf(p).Elem(), "", func(at string, v reflect.Value) {
			if at == name {
				change(v)
			}
		})
		d := p.Digest(nil)
		nothing := meansNothing[name] || isOf(name, ".Services") || hasPos(name)
		if was, is := seen[d]; is && !nothing {
			t.Errorf("%s has another value, and the digest of %q", name, was)
		} else if !is && nothing {
			t.Errorf("%s means nothing, and changes the digest", name)
		}
		if !nothing {
			seen[d] = name
		}
	}
	for what, p := range map[string]func(*Policy){
		"no absentees":     func(p *Policy) { p.Absentees = nil },
		"no alias":         func(p *Policy) { p.Aliases = []PortAliases{} },
		"no word on alias": func(p *Policy) { p.Aliases = nil },
		"no VL table":      func(p *Policy) { p.Settings.VLArbHigh = nil },
		"no partition":     func(p *Policy) { p.Partitions = nil },
		"two partitions":   func(p *Policy) { p.Partitions = append(p.Partitions, Partition{Name: "b", PKey: 9}) },
		"the other first": func(p *Policy) {
			p.Partitions = []Partition{{Name: "b", PKey: 9}, p.Partitions[0]}
		},
	} {
		x := whole()
		p(x)
		d := x.Digest(nil)
		if was, is := seen[d]; is {
			t.Errorf("%s: the digest of %q", what, was)
		}
		seen[d] = what
	}
}

func isOf(at, prefix string) bool { return len(at) >= len(prefix) && at[:len(prefix)] == prefix }

func hasPos(at string) bool {
	for i := range at {
		if isOf(at[i:], ".Pos") || isOf(at[i:], ".At[") {
			return true
		}
	}
	return false
}

// What means the same has the same digest: usual settings, stated or not, groups in another
// order, and numbers, stated or allocated.
func TestDigestOfTheSame(t *testing.T) {
	usual := DefaultSettings()
	a := &Policy{Default: Limited, Groups: []Group{{Name: "a"}, {Name: "b"}}, Partitions: []Partition{{Name: "x", PKey: 3}, {Name: "y", PKey: 4}}, Source: "a"}
	b := &Policy{
		Default: Limited, Groups: []Group{{Name: "b"}, {Name: "a"}}, Settings: &usual, Links: []LinkLimit{},
		Partitions: []Partition{{Name: "x", From: 3, Members: []Member{}}, {Name: "y", Pos: Pos{3, 4}}},
	}
	numbers := map[string]ib.PKeyBase{"x": 3, "y": 4}
	if a.Digest(nil) != b.Digest(numbers) || a.Digest(numbers) != a.Digest(nil) {
		t.Error("they have another digest")
	}
	if b.Digest(numbers) == b.Digest(map[string]ib.PKeyBase{"x": 4, "y": 3}) {
		t.Error("other numbers make no difference")
	}
	usual.VLArbLow = append([]smp.VLArbitrationEntry{}, usual.VLArbLow...)
	usual.VLArbLow[0].Weight++
	if a.Digest(nil) == b.Digest(numbers) {
		t.Error("another weight makes no difference")
	}
}

// TestDigestForm: the encoding is the one that digestForm names. Where this fails, count that
// up, and policyModifier of package mastership: managers of two versions compare their digests.
func TestDigestForm(t *testing.T) {
	const want = "f2fcf5fe05e1fac37e3eb07a1d42a76b640a789c2f8fcf984a4d497397e1f9ae"
	if got := fmt.Sprintf("%x", whole().Digest(nil)); got != want {
		t.Errorf("the digest of a whole policy is %s, want %s", got, want)
	}
}
