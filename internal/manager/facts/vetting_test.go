package facts

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// named is a policy with a partition of these descriptions.
func named(names ...string) *policy.Policy {
	x := policy.Partition{Name: "red", PKey: 0x10}
	for _, n := range names {
		x.Members = append(x.Members, policy.Member{Selector: policy.Selector{Kind: policy.SelectDescription, Text: n}, Membership: policy.Full})
	}
	return &policy.Policy{Source: "policy.yaml", Default: policy.Limited, Partitions: []policy.Partition{x}}
}

// hosts are end ports with these descriptions.
func hosts(names ...string) (out []policy.EndPort) {
	for i, n := range names {
		out = append(out, policy.EndPort{PortGUID: ib.PortGUID(0x100 + i), NodeGUID: ib.NodeGUID(0x100 + i), PortNum: 1, NodeType: ib.NodeCA, Description: n})
	}
	return out
}

// vet judges a policy among hosts; the site has these and others.
func vet(t *testing.T, n *PolicyNames, p *policy.Policy, here []policy.EndPort, others ...string) error {
	t.Helper()
	return n.VetAmong(n.Resolver(here), p, nil, func() *policy.Site {
		return &policy.Site{Ports: append(slices.Clone(here), hosts(others...)...)}
	})
}

// A name that nobody has stops a policy, with the name that may have been meant; one
// that is known to belong to somebody does not.
func TestVet(t *testing.T) {
	for _, x := range []struct {
		name    string
		known   map[string]bool
		policy  *policy.Policy
		here    []policy.EndPort
		others  []string
		refused []string // part of the error, nil for none
	}{
		{name: "everybody is here", policy: named("h1", "h2"), here: hosts("h1", "h2")},
		{name: "a name is misspelt", policy: named("h1", "blue-1"), here: hosts("h1", "blue-7"), refused: []string{"blue-1", "did you mean 'blue-7'?", "policy.yaml", "1 name in the policy"}},
		{name: "a host of the list of cables", policy: named("h1", "h2"), here: hosts("h1"), others: []string{"h2"}},
		{name: "a name of an earlier run", known: map[string]bool{policy.Selector{Kind: policy.SelectDescription, Text: "h2"}.String(): true}, policy: named("h1", "h2"), here: hosts("h1")},
		{name: "nobody is here", policy: named("x", "y"), here: hosts("h1"), refused: []string{"2 names", "x", "y"}},
	} {
		err := vet(t, &PolicyNames{Known: x.known}, x.policy, x.here, x.others...)
		var absent *policy.AbsentError
		if errors.As(err, &absent) != (x.refused != nil) {
			t.Errorf("%s: %v", x.name, err)
		}
		for _, part := range x.refused {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", x.name, err, part)
			}
		}
	}
}

// Where absent names only warn, a policy of which nobody is here is refused all the
// same: it is another fabric's.
func TestPolicyOfAnotherFabric(t *testing.T) {
	p := named("x", "y")
	p.AbsentWarns = true
	err := vet(t, &PolicyNames{}, p, hosts("h1"))
	var absent *policy.AbsentError
	if !errors.As(err, &absent) || !absent.All || len(absent.Names) != 2 {
		t.Errorf("%v", err)
	}
	if err := vet(t, &PolicyNames{}, p, hosts("x")); err != nil {
		t.Errorf("one of them is here: %v", err)
	}
}

// A policy in force is never stopped by who is switched off, nor one that was found
// good; a name that has found somebody in this run is no misspelling.
func TestWhoWasThere(t *testing.T) {
	n, p := &PolicyNames{}, named("h1", "h2")
	if n.HasPolicy() {
		t.Error("no policy was accepted")
	}
	if err := vet(t, n, p, hosts("h1", "h2")); err != nil {
		t.Fatal(err)
	}
	if err := vet(t, n, p, hosts("h1")); err != nil {
		t.Errorf("it was found good before: %v", err)
	}
	if err := vet(t, n, named("h2"), hosts("h1")); err != nil {
		t.Errorf("another policy with a name that was met: %v", err)
	}
	if err := vet(t, n, named("h3"), hosts("h1")); err == nil {
		t.Error("a name that was never met is accepted")
	}
	listed, q := &PolicyNames{}, named("h1", "h2")
	if err := vet(t, listed, q, hosts("h1"), "h2"); err != nil {
		t.Fatal(err)
	}
	if err := vet(t, listed, q, hosts("h1")); err != nil {
		t.Errorf("it was found good by the list of cables: %v", err)
	}
	fresh := &PolicyNames{}
	fresh.Accept(p)
	if r, err := p.Resolve(nil, map[string]ib.PKeyBase{"red": 0x10}); err != nil || len(r.Absent) != 2 || fresh.Vet(p, r, func() *policy.Site { return &policy.Site{} }) != nil {
		t.Errorf("it is in force: %v", err)
	}
	if err := vet(t, fresh, p, hosts()); err != nil || !fresh.HasPolicy() {
		t.Errorf("it is in force: %v", err)
	}
}

// For a policy that was refused the subnet is read again once, and for no other error.
func TestLooksAgain(t *testing.T) {
	n, p := &PolicyNames{}, named("h1")
	refused := vet(t, n, p, hosts())
	if n.LooksAgain(p, errors.New("another error")) || !n.LooksAgain(p, refused) || n.LooksAgain(p, refused) {
		t.Error("want once, for names that nobody has")
	}
	if !n.LooksAgain(named("h1"), refused) {
		t.Error("another policy is looked for again")
	}
}

// What is remembered for the next run is what was known and what was met.
func TestAll(t *testing.T) {
	text := func(name string) string { return policy.Selector{Kind: policy.SelectDescription, Text: name}.String() }
	n := &PolicyNames{Known: map[string]bool{text("old"): true}}
	if got := n.All(); !maps.Equal(got, n.Known) {
		t.Errorf("%v", got)
	}
	if err := vet(t, n, named("h1"), hosts("h1")); err != nil {
		t.Fatal(err)
	}
	if got, want := n.All(), map[string]bool{text("old"): true, text("h1"): true}; !maps.Equal(got, want) || len(n.Known) != 1 {
		t.Errorf("%v, want %v; known %v", got, want, n.Known)
	}
	n.Known = make(map[string]bool, policy.MembersMax+1)
	for i := range policy.MembersMax + 1 {
		n.Known[strconv.Itoa(i)] = true
	}
	if got := n.All(); len(got) != 1 || !got[text("h1")] {
		t.Errorf("%d names after too many", len(got))
	}
}
