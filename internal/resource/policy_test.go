package resource_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// randomChange is one of some kinds of changes, by one of some callers.
func randomChange(r *rand.Rand) (resource.Caller, resource.Change) {
	tenants := []string{"red", "blue", resource.Provider}
	by := of(tenants[r.IntN(3)])
	k := []ib.PKeyBase{0x100, 0x101, 0x200, 0x201, 0x20, 0x21}[r.IntN(6)]
	g := func() ib.PortGUID { return ib.PortGUID(1 + r.IntN(12)) }
	m := func() resource.Member {
		return resource.Member{Port: g(), Membership: policy.Membership(1 + r.IntN(2)), Index0: r.IntN(6) == 0}
	}
	switch r.IntN(14) {
	case 0:
		return by, resource.PutPartition{Partition: resource.Partition{Name: fmt.Sprint("p", k, r.IntN(2)), PKey: k, SL: ib.SL(r.IntN(3)), IPoIB: r.IntN(2) == 0}}
	case 1:
		return by, resource.DeletePartition{PKey: k}
	case 2:
		return by, resource.RemoveMembers{PKey: k, Ports: []ib.PortGUID{g()}, DeleteEmptied: r.IntN(2) == 0}
	case 3:
		return of(resource.Provider), resource.AssignPorts{Tenant: tenants[r.IntN(3)], Ports: []resource.Port{{GUID: g(), Switch: 0x99, SwitchPort: ib.PortNum(1 + r.IntN(20))}}}
	case 4:
		return of(resource.Provider), resource.ReleasePorts{Ports: []ib.PortGUID{g()}}
	case 5:
		first := g()
		return of(resource.Provider), resource.AssignPool{Tenant: tenants[r.IntN(3)], First: first, Last: first + 2}
	case 6:
		return of(resource.Provider), resource.ReleasePool{First: g()}
	case 7:
		return of(resource.Provider), file(fmt.Sprintf("default: %s\naliases: [{port: %#x, guids: [0x0200000000000001]}]\npartitions: [{name: a}, {name: b, pkey: %#x, members: {full: [ALL_CAS], limited: [%#x]}}]",
			[]string{"full", "limited", "none"}[r.IntN(3)], uint64(g()), 0x22+r.IntN(3), uint64(g())))
	case 8:
		return by, resource.SetMembers{PKey: k, Members: []resource.Member{m()}, All: true}
	case 9:
		return by, set(k, []resource.Member{{Port: 0x0200_0000_0000_0001, Membership: policy.Full}})
	default:
		return by, set(k, []resource.Member{m()})
	}
}

// The policy that is kept from change to change is the one that a state restored from
// the same objects, in any order, makes from nothing; and no later change, nor any
// plan, alters a policy that was handed out.
func TestThePolicyThatIsKeptIsThatFromNothing(t *testing.T) {
	accepted := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		b := twoTenants(t)
		for step := range 150 {
			by, c := randomChange(r)
			handed := b.Policy()
			text := string(policyfile.WriteYAML(handed))
			d, err := b.plan(by, c)
			if now := string(policyfile.WriteYAML(b.Policy())); now != text {
				t.Fatalf("seed %d, step %d: a plan of %s changed the policy:\n%s", seed, step, c.Action(), cmp.Diff(text, now))
			}
			if err != nil {
				continue
			}
			accepted++
			with := string(policyfile.WriteYAML(b.PolicyWith(d)))
			if now := string(policyfile.WriteYAML(b.Policy())); now != text || b.Policy() != handed {
				t.Fatalf("seed %d, step %d: to ask what %s does changed the policy:\n%s", seed, step, c.Action(), cmp.Diff(text, now))
			}
			b.Commit(d, b.Last()+1, by, b.at)
			if again := string(policyfile.WriteYAML(handed)); again != text {
				t.Fatalf("seed %d, step %d: %s altered the policy before it:\n%s", seed, step, c.Action(), cmp.Diff(text, again))
			}
			if diff := cmp.Diff(with, string(policyfile.WriteYAML(b.Policy()))); diff != "" {
				t.Fatalf("seed %d, step %d: %s (-as it was to be, +as it is):\n%s", seed, step, c.Action(), diff)
			}
			objects := b.Objects()
			r.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
			fresh := resource.New(&policy.Policy{Default: policy.Limited})
			for _, o := range objects {
				_, revision := b.Object(o.Key())
				if err := fresh.Restore(o, revision); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(policyfile.WriteYAML(fresh.Policy())), string(policyfile.WriteYAML(b.Policy()))); diff != "" {
				t.Fatalf("seed %d, step %d: after %s by %s (-from nothing +kept):\n%s", seed, step, c.Action(), by.Name, diff)
			}
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d changes were accepted", accepted)
	}
}

// On a store without tenants, what is exported resolves to the same members on the
// same fabric; on its own store it changes nothing.
func TestWhatIsExportedResolvesToTheSame(t *testing.T) {
	var fabric []policy.EndPort
	for i := range ib.PortGUID(14) {
		fabric = append(fabric, policy.EndPort{PortGUID: i + 1, NodeGUID: ib.NodeGUID(0x100 + i/2), PortNum: ib.PortNum(1 + i%2), NodeType: ib.NodeCA,
			Description: fmt.Sprint("n", i), SM: i == 13, Switch: 0x99, SwitchPort: ib.PortNum(1 + i)})
	}
	members := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		b := twoTenants(t)
		for range 60 {
			by, c := randomChange(r)
			if d, err := b.plan(by, c); err == nil {
				b.Commit(d, b.Last()+1, by, b.at)
			}
		}
		want, err := b.Policy().Resolve(fabric, nil)
		if err != nil {
			t.Fatal(err)
		}
		export := resource.PutFile{File: resource.File{Name: "export.yaml", Text: string(b.Export())}}
		if d, err := b.plan(provider, export); err != nil || len(d.Edits) > 0 {
			t.Fatalf("seed %d: applied to its own store: %v, %v\n%s", seed, err, d.Words, export.Text)
		}
		empty := newBench(t)
		empty.do(provider, export)
		got, err := empty.Policy().Resolve(fabric, nil)
		if err != nil {
			t.Fatal(err)
		}
		want.Warnings, want.Absent, got.Warnings, got.Absent = nil, nil, nil, nil
		for _, res := range []*policy.Resolution{want, got} {
			for i := range res.Partitions {
				members += len(res.Partitions[i].Full)
			}
			for i := range res.Aliases {
				res.Aliases[i].Pos = policy.Pos{}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: (-state +export)\n%s\n%s", seed, diff, export.Text)
		}
	}
	if members < 500 {
		t.Errorf("only %d members in all", members)
	}
}

// large is a state of some partitions with members, among 11,664 ports.
func large(t testing.TB, partitions, members int) *bench {
	b := &bench{nil, resource.New(&policy.Policy{Default: policy.Limited}), time.Unix(1e9, 0)}
	do := func(c resource.Change) {
		d, err := b.plan(provider, c)
		if err != nil {
			t.Fatal(err)
		}
		b.Commit(d, b.Last()+1, provider, b.at)
	}
	const ports, tenants = 11664, 100
	for i := range tenants {
		name, first := fmt.Sprint("t", i), ib.PKeyBase(1+i*300)
		do(resource.PutTenant{Tenant: resource.Tenant{Name: name, Keys: resource.KeyRange{First: first, Last: first + 299}}})
		give := resource.AssignPorts{Tenant: name}
		for j := i; j < ports; j += tenants {
			give.Ports = append(give.Ports, resource.Port{GUID: ib.PortGUID(j + 1)})
		}
		do(give)
	}
	for i := range partitions {
		owner := i % tenants
		put := resource.PutPartition{Partition: resource.Partition{Owner: fmt.Sprint("t", owner), Name: fmt.Sprint("p", i), PKey: ib.PKeyBase(1 + owner*300 + i/tenants)}}
		for j := range members {
			put.Members = append(put.Members, resource.Member{Port: ib.PortGUID(owner + 1 + j*tenants), Membership: policy.Full})
		}
		do(put)
	}
	return b
}

// One member changed leaves the lists of all other partitions the same slices.
func TestPolicySharesWhatDidNotChange(t *testing.T) {
	b := large(t, 300, 8)
	before := b.Policy()
	if b.Policy() != before {
		t.Error("another policy without a change")
	}
	d, err := b.plan(provider, resource.RemoveMembers{PKey: 1, Ports: []ib.PortGUID{1}})
	if err != nil {
		t.Fatal(err)
	}
	b.Commit(d, b.Last()+1, provider, b.at)
	after, shared := b.Policy(), 0
	for i := range after.Partitions {
		if &before.Partitions[i].Members[0] == &after.Partitions[i].Members[0] && after.Partitions[i].Immutable {
			shared++
		}
	}
	if shared != 299 {
		t.Errorf("%d of 300 lists are shared: want 299", shared)
	}
}

func benchmarkChange(b *testing.B, partitions, members int) {
	s := large(b, partitions, members)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := resource.Change(set(5*300+1, []resource.Member{{Port: 6, Membership: policy.Full}}))
		if i%2 == 0 {
			c = resource.RemoveMembers{PKey: 5*300 + 1, Ports: []ib.PortGUID{6}}
		}
		d, err := s.plan(of("t5"), c)
		if err != nil {
			b.Fatal(err)
		}
		s.Commit(d, s.Last()+1, of("t5"), s.at.Add(time.Duration(i)*time.Second))
		if s.Policy() == nil {
			b.Fatal("no policy")
		}
	}
}

func BenchmarkChange1000x64(b *testing.B) { benchmarkChange(b, 1000, 64) }
func BenchmarkChange100x8(b *testing.B)   { benchmarkChange(b, 100, 8) }

func BenchmarkPlan1000x64(b *testing.B) { benchmarkPlan(b, 1000, 64) }
func BenchmarkPlan100x8(b *testing.B)   { benchmarkPlan(b, 100, 8) }

func benchmarkPlan(b *testing.B, partitions, members int) {
	s := large(b, partitions, members)
	c := set(5*300+1, []resource.Member{{Port: 6, Membership: policy.Limited}})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.plan(of("t5"), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResolve1000x64 resolves the policy again after one member was changed.
func BenchmarkResolve1000x64(b *testing.B) {
	s := large(b, 1000, 64)
	var ports []policy.EndPort
	for i := range 11664 {
		ports = append(ports, policy.EndPort{PortGUID: ib.PortGUID(i + 1), NodeGUID: ib.NodeGUID(i + 1), NodeType: ib.NodeCA, PortNum: 1})
	}
	r := policy.NewResolver(ports)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := resource.Change(set(5*300+1, []resource.Member{{Port: 6, Membership: policy.Full}}))
		if i%2 == 0 {
			c = resource.RemoveMembers{PKey: 5*300 + 1, Ports: []ib.PortGUID{6}}
		}
		d, err := s.plan(of("t5"), c)
		if err != nil {
			b.Fatal(err)
		}
		s.Commit(d, s.Last()+1, of("t5"), s.at.Add(time.Duration(i)*time.Second))
		if _, err := r.Resolve(s.Policy(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
