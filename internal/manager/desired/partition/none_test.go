package partition

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// without is a resolution without a default partition; the order of parts is
// that of the policy.
func without(parts ...observed.Partition) *policy.Resolution {
	for i := range parts {
		parts[i].Order = i
	}
	return &policy.Resolution{NoDefault: true, Partitions: parts}
}

// PK-36: without a default partition a port's first key stands at index 0 and
// stays there while the port keeps it.
func TestPK36WithoutDefault(t *testing.T) {
	const port ib.PortGUID = 1
	index0 := func(p observed.Partition) observed.Partition { p.Index0 = p.Full; return p }
	for _, tt := range []struct {
		name    string
		current Table
		r       *policy.Resolution
		want    string
	}{
		{"no tenant, no key", Table{0xffff}, without(), ""},
		{"nothing read", nil, without(part(1, port)), "8001"},
		{"a fresh port", Table{0xffff}, without(part(1, port)), "8001"},
		{"from the shared default", Table{0x7fff, 0x8001}, without(part(1, port)), "8001"},
		{"the order of the policy, not of numbers", Table{0xffff}, without(part(9, port), part(1, port), part(2, port)), "8009 8001 8002"},
		{"stays", Table{0x8002, 0x8001}, without(part(1, port), part(2, port)), "8002 8001"},
		{"stays as a limited member too", Table{0x0002, 0x8001}, without(part(1, port), part(2, port)), "8002 8001"},
		{"the first is lost", Table{0x8001, 0x8003, 0x8002}, without(part(2, port), part(3, port)), "8002 8003"},
		{"the first is lost, the other order", Table{0x8001, 0x8003, 0x8002}, without(part(3, port), part(2, port)), "8003 0 8002"},
		{"a claim", Table{0x8001, 0x8002}, without(part(1, port), index0(part(2, port))), "8002 8001"},
		{"back to the shared default", Table{0x8001}, resolution(part(1, port)), "7fff 8001"},
		{"a default partition that the policy names", Table{0x8001}, without(part(1, port), part(0x7fff, port)), "ffff 8001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := Compile(Input{Ports: []PortFacts{{PortGUID: port, NodeGUID: 1, PortNum: 1, Cap: 8, Current: tt.current,
				Facing: &SwitchPortFacts{SwitchGUID: 9, PortNum: 1, Cap: 8, InboundCap: true, OutboundCap: true}}}, Resolution: tt.r})
			if err != nil {
				t.Fatal(err)
			}
			got, guard := out.EndPorts[0].Table, out.SwitchPorts[0]
			if show(got) != tt.want || got == nil {
				t.Errorf("%s became %s, want %s", show(tt.current), show(got), tt.want)
			}
			if !guard.HasTable || guard.Table == nil || !guard.Inbound || !guard.Outbound || len(guard.Table) != len(tt.want)/5+1-strings.Count(tt.want, " 0 ") && tt.want != "" {
				t.Errorf("guard %+v for %s", guard, tt.want)
			}
			if tt.want == "" && len(guard.Table) > 0 {
				t.Errorf("the guard of a port without a tenant passes %s", show(guard.Table))
			}
		})
	}
}

// Two who claim one GUID, and who does not fit once the policy stands, get no
// key at all, and their guards pass none.
func TestNobodysPortsGetNothing(t *testing.T) {
	guard := func(n ib.PortNum) *SwitchPortFacts {
		return &SwitchPortFacts{SwitchGUID: 9, PortNum: n, Cap: 8, InboundCap: true, OutboundCap: true}
	}
	out, err := Compile(Input{
		Ports: []PortFacts{
			{PortGUID: 1, NodeGUID: 1, PortNum: 1, Cap: 8, Current: Table{0x8001}, Facing: guard(1)},
			{PortGUID: 1, NodeGUID: 2, PortNum: 1, Cap: 8, Current: Table{0xffff}, Facing: guard(2)},
			{PortGUID: 3, NodeGUID: 3, PortNum: 1, Cap: 1, Current: Table{0x8001}, Facing: guard(3)},
		},
		Resolution: without(part(1, 1, 3), part(2, 1, 3)),
		Fence:      func(ib.PortGUID) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range out.EndPorts {
		if len(x.Table) > 0 || len(out.SwitchPorts[i].Table) > 0 || !out.SwitchPorts[i].HasTable {
			t.Errorf("port %v holds %s, its guard %s", x.PortGUID, show(x.Table), show(out.SwitchPorts[i].Table))
		}
	}
	if len(out.Fenced) != 1 || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "neither gets a key") {
		t.Errorf("fenced %v, warnings %v", out.Fenced, out.Warnings)
	}
}

// The manager is in every partition: a policy that its table has no room for is
// refused, and the refusal says how many fit.
func TestManagersTableIsFull(t *testing.T) {
	_, err := Compile(Input{
		Ports:      []PortFacts{{PortGUID: 1, NodeGUID: 1, PortNum: 1, Cap: 2, Manager: true}},
		Resolution: without(part(1, 1), part(2, 1), part(3, 1)),
	})
	var fault *Error
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "the manager's port 0x0000000000000001") ||
		!strings.Contains(err.Error(), "its P_Key table holds 2; the policy has 3: take 1 of them out") {
		t.Errorf("%v", err)
	}
}

// A switch port that can check keys and has no room for all of a host's is a
// reason to refuse the policy, or to fence the port: nothing would hold the host.
// The manager's own is named, and no more.
func TestGuardIsFull(t *testing.T) {
	facing := &SwitchPortFacts{SwitchGUID: 9, PortNum: 4, Cap: 2, InboundCap: true, OutboundCap: true}
	in := Input{
		Ports:      []PortFacts{{PortGUID: 1, NodeGUID: 1, PortNum: 1, Cap: 8, Facing: facing}},
		Resolution: without(part(1, 1), part(2, 1), part(3, 1)),
	}
	_, err := Compile(in)
	var fault *Error
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "the P_Key table of switch 0x0000000000000009 port 4 before it holds 2 keys, the policy needs 3: take the port out of 1 of") {
		t.Errorf("a host: %v", err)
	}
	in.Fence = func(ib.PortGUID) bool { return true }
	out, err := Compile(in)
	if err != nil || len(out.Fenced) != 1 || len(out.EndPorts[0].Table) > 0 || len(out.SwitchPorts[0].Table) > 0 || !out.SwitchPorts[0].Inbound {
		t.Errorf("a host that is fenced: %v, %+v", err, out)
	}
	in.Ports[0].Manager, in.Fence = true, nil
	out, err = Compile(in)
	if err != nil || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "port 4, before port 0x0000000000000001: its P_Key table holds 2 keys, the port needs 3: it checks nothing") {
		t.Errorf("the manager: %v, warnings %q", err, out.Warnings)
	}
	facing.Cap, facing.OutboundCap, in.Ports[0].Manager = 2, false, false
	if _, err = Compile(in); err != nil {
		t.Errorf("a switch that cannot check both ways anyway: %v", err)
	}
}

// Whatever tables there were: the key at index 0 stays while the port keeps its
// partition, and each key is there once.
func TestIndex0StaysWithoutDefault(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		current := Table(rapid.SliceOfN(rapid.SampledFrom([]ib.PKey{0, 0x8001, 1, 0x8002, 2, 0x8003, 0x8004, 0xffff, 0x7fff, 0x8077}), 0, 8).Draw(t, "current"))
		var parts []observed.Partition
		for _, base := range rapid.SliceOfNDistinct(rapid.SampledFrom([]ib.PKeyBase{1, 2, 3, 4, 5}), 0, 5, rapid.ID[ib.PKeyBase]).Draw(t, "partitions") {
			parts = append(parts, part(base, 1))
		}
		r := without(slices.Clone(parts)...)
		slices.SortFunc(r.Partitions, func(a, b observed.Partition) int { return int(a.Base) - int(b.Base) })
		out, err := Compile(Input{Ports: []PortFacts{{PortGUID: 1, NodeGUID: 1, PortNum: 1, Cap: 8, Current: current}}, Resolution: r})
		if err != nil {
			t.Fatal(err)
		}
		table := out.EndPorts[0].Table
		for _, p := range parts {
			n := 0
			for _, k := range table {
				if k == p.Base.Full() {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("%s became %s: %v stands there %d times", show(current), show(table), p.Base, n)
			}
		}
		if len(parts) == 0 {
			if len(table) > 0 {
				t.Fatalf("%s became %s, want nothing", show(current), show(table))
			}
			return
		}
		want := parts[0].Base
		for _, p := range parts {
			if len(current) > 0 && current[0].IsValid() && current[0].Base() == p.Base {
				want = p.Base
			}
		}
		if table[0].Base() != want {
			t.Fatalf("%s became %s: index 0 holds %v, want %v", show(current), show(table), table[0], want)
		}
	})
}

// Who claims the GUID of the manager's own port gets nothing, and takes nothing
// from it: else one host could silence subnet administration for all.
func TestManagersGUIDIsClaimed(t *testing.T) {
	guard := func(n ib.PortNum) *SwitchPortFacts {
		return &SwitchPortFacts{SwitchGUID: 9, PortNum: n, Cap: 8, InboundCap: true, OutboundCap: true}
	}
	for _, manager := range []ib.NodeGUID{1, 2, 3} {
		var ports []PortFacts
		for node := range ib.NodeGUID(3) {
			ports = append(ports, PortFacts{PortGUID: 7, NodeGUID: node + 1, PortNum: 1, Cap: 8, Current: Table{0xffff},
				Facing: guard(ib.PortNum(node + 1)), Manager: node+1 == manager})
		}
		out, err := Compile(Input{Ports: ports, Resolution: without(part(1, 7), part(2, 7))})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range out.EndPorts {
			want := ""
			if x.NodeGUID == manager {
				want = "8001 8002"
			}
			if show(x.Table) != want || show(out.SwitchPorts[i].Table) != want {
				t.Errorf("manager %v: node %v holds %s, its guard %s, want %s", manager, x.NodeGUID, show(x.Table), show(out.SwitchPorts[i].Table), want)
			}
		}
	}
}
