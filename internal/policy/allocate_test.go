package policy

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/ib"
)

// partitions makes a policy of partitions given as "name" or "name=number".
func partitions(specs ...string) *Policy {
	p := &Policy{Default: Limited}
	for _, spec := range specs {
		name, number, _ := strings.Cut(spec, "=")
		part := Partition{Name: name}
		if number != "" {
			base, err := ib.ParsePKeyBase(number)
			if err != nil {
				panic(err)
			}
			part.PKey = base
		}
		p.Partitions = append(p.Partitions, part)
	}
	return p
}

func TestAllocate(t *testing.T) {
	type numbers = map[string]ib.PKeyBase
	tests := []struct {
		name     string
		policy   *Policy
		previous numbers
		want     numbers
		err      string
	}{
		{"from 1 up", partitions("a", "b"), nil, numbers{"a": 1, "b": 2}, ""},
		{"never a stated number", partitions("a", "x=1", "b", "y=3"), nil, numbers{"a": 2, "b": 4}, ""},
		{"kept", partitions("b", "a"), numbers{"a": 7, "b": 3}, numbers{"a": 7, "b": 3}, ""},
		{"stated ones are not in the answer", partitions("a=5"), numbers{"a": 7}, numbers{}, ""},
		{"not the number of one that goes", partitions("b", "c"), numbers{"a": 1, "b": 2}, numbers{"b": 2, "c": 3}, ""},
		{"the default is never given", partitions("a"), numbers{"a": 0x7fff}, nil, `"Default" states P_Key 0x7fff`},
		{"an invalid one is forgotten", partitions("a"), numbers{"a": 0}, numbers{"a": 1}, ""},
		{"stated by another since", partitions("a", "b=1"), numbers{"a": 1}, nil, `partition "b" states P_Key 0x0001, which was allocated to "a" before`},
		{"two had the same", partitions("a", "b"), numbers{"a": 1, "b": 1}, nil, `allocated to "b" before`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Allocate(tt.policy, tt.previous)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, %v; want the error %q", got, err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
		})
	}
}

// PK-04: every number is handed out once, then there is none left. With the
// default partition that makes 32,767.
func TestPK04EveryNumberOnce(t *testing.T) {
	p := &Policy{Default: Limited}
	for i := range int(ib.PKeyBaseMax) - 1 {
		p.Partitions = append(p.Partitions, Partition{Name: fmt.Sprint("p", i)})
	}
	numbers, err := Allocate(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[ib.PKeyBase]bool{ib.PKeyBaseDefault: true}
	for name, base := range numbers {
		if seen[base] || !base.IsValid() {
			t.Fatalf("%s got %v, which is taken or none", name, base)
		}
		seen[base] = true
	}
	if len(seen) != 32767 {
		t.Errorf("%d numbers in use, want 32767", len(seen))
	}
	// A partition that comes in place of one that goes gets its number, since
	// there is no other.
	p.Partitions[5].Name = "new"
	again, err := Allocate(p, numbers)
	if err != nil || again["new"] != numbers["p5"] {
		t.Errorf("in place of p5 (%v): %v, %v", numbers["p5"], again["new"], err)
	}
	p.Partitions = append(p.Partitions, Partition{Name: "one more"})
	if _, err := Allocate(p, numbers); err == nil || !strings.Contains(err.Error(), "no P_Key is left") {
		t.Errorf("one partition too many: %v", err)
	}
}

// A number stays with its name through any sequence of changes, is never
// shared, and the answer depends on nothing but the arguments.
func TestAllocateIsStable(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "x=1", "y=2", "z=0x7fff"}
	rapid.Check(t, func(t *rapid.T) {
		var previous map[string]ib.PKeyBase
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			p := partitions(rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "partitions")...)
			before := maps.Clone(previous)
			got, err := Allocate(p, previous)
			if !maps.Equal(before, previous) {
				t.Fatalf("the previous numbers were changed to %v", previous)
			}
			if err != nil {
				continue // a stated number that was given away
			}
			if again, _ := Allocate(p, previous); !maps.Equal(got, again) {
				t.Fatalf("%v, and then %v", got, again)
			}
			taken := map[ib.PKeyBase]bool{ib.PKeyBaseDefault: true}
			for _, part := range p.Partitions {
				base := part.PKey
				if base == 0 {
					base = got[part.Name]
					if had, ok := previous[part.Name]; ok && had != base {
						t.Fatalf("%s had %v and got %v", part.Name, had, base)
					}
				} else if base == ib.PKeyBaseDefault {
					continue
				}
				if taken[base] || !base.IsValid() {
					t.Fatalf("%s got %v, which is taken or none: %v", part.Name, base, got)
				}
				taken[base] = true
			}
			previous = got
		}
	})
}

// A reserved number goes to nobody, be it free or had before by another; who had it
// keeps it.
func TestAllocateExceptReserved(t *testing.T) {
	p := &Policy{Partitions: []Partition{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	reserved := func(k ib.PKeyBase) bool { return k < 0x7FF0 }
	got, err := AllocateExcept(p, map[string]ib.PKeyBase{"a": 5, "gone": 0x7FF0}, reserved)
	if err != nil || got["a"] != 5 || got["b"] != 0x7FF1 || got["c"] != 0x7FF2 {
		t.Errorf("%v, %v", got, err)
	}
	p.Partitions = p.Partitions[:1]
	for i := range 16 {
		p.Partitions = append(p.Partitions, Partition{Name: string(rune('A' + i))})
	}
	if got, err := AllocateExcept(p, nil, reserved); err == nil {
		t.Errorf("17 partitions got the 15 numbers that are left: %v", got)
	}
}
