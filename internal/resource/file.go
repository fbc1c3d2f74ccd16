package resource

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// parse reads the text of the file, without the partitions that are left to the API
// and with the numbers that were given.
func (f *File) parse() (*policy.Policy, error) {
	if f.parsed != nil {
		return f.parsed, nil
	}
	p, err := policyfile.Read([]byte(f.Text), f.Name, policyfile.Options{AllowBoth: f.AllowBoth})
	if err != nil {
		return nil, err
	}
	p.Partitions = slices.DeleteFunc(p.Partitions, func(x policy.Partition) bool { return slices.Contains(f.Left, x.Name) })
	policy.FillNumbers(p, f.Numbers)
	f.parsed = p
	return p, nil
}

// written is what is known of the policy of the file, or of the base.
type written struct {
	file   *File
	policy *policy.Policy
	claims map[ib.PKeyBase]string // partitions by the numbers that they state
	names  map[string]bool
	// named is where the GUID of a port stands.
	named     map[ib.PortGUID]string
	aliases   map[ib.PortGUID]ib.PortGUID // ports by their aliases
	aliasesOf map[ib.PortGUID][]ib.PortGUID
}

func newWritten(p *policy.Policy) written {
	w := written{
		policy: p, claims: map[ib.PKeyBase]string{}, names: map[string]bool{}, named: map[ib.PortGUID]string{},
		aliases: map[ib.PortGUID]ib.PortGUID{}, aliasesOf: map[ib.PortGUID][]ib.PortGUID{},
	}
	for i := range p.Partitions {
		x := &p.Partitions[i]
		w.names[x.Name] = true
		if x.PKey != 0 {
			w.claims[x.PKey] = x.Name
		}
	}
	policy.EachNamed(p, func(g ib.PortGUID, where string, _ policy.Pos) { w.named[g] = where })
	for _, a := range p.Aliases {
		for _, g := range a.GUIDs {
			if g != 0 {
				w.aliases[g] = a.Port
				w.aliasesOf[a.Port] = append(w.aliasesOf[a.Port], g)
			}
		}
	}
	return w
}

// port is the port that has a GUID: as an alias that the policy gives it, or itself.
func (w *written) port(g ib.PortGUID) ib.PortGUID {
	if port, alias := w.aliases[g]; alias {
		return port
	}
	return g
}

// guids are a port and its aliases.
func (w *written) guids(port ib.PortGUID) []ib.PortGUID {
	return append([]ib.PortGUID{port}, w.aliasesOf[port]...)
}

// allocated are the partitions of the base by the numbers in Allocated.
func (s *State) allocated() map[ib.PKeyBase]string {
	out := map[ib.PKeyBase]string{}
	if s.written.file == nil {
		for name, k := range s.Allocated {
			if s.written.names[name] {
				out[k] = name
			}
		}
	}
	return out
}

// Claimed is the name of the partition of the file, or of the base, that has a number.
func (s *State) Claimed(k ib.PKeyBase) (string, bool) {
	if name, stated := s.written.claims[k]; stated {
		return name, true
	}
	if s.written.file == nil {
		for name, n := range s.Allocated {
			if n == k && s.written.names[name] {
				return name, true
			}
		}
	}
	return "", false
}

// PutFile applies a policy file: it is the desired state of the provider's partitions
// that are in it, and in the file before, and of nothing else. A partition of the API
// that it has too, in name, number, members and all else, is left to the API; one that
// it has otherwise is a fault that names both. It names no port of a tenant by GUID,
// and by ALL, a pattern and the like it means none. What says the same as what is in
// force makes no edit.
type PutFile struct{ File }

func (PutFile) Action() string { return "apply policy file" }

func (c PutFile) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	f := File{Name: c.Name, Text: c.Text, AllowBoth: c.AllowBoth}
	p, err := policyfile.Read([]byte(f.Text), f.Name, policyfile.Options{AllowBoth: f.AllowBoth})
	if err != nil {
		return refuse(Invalid, "text", "%v", err)
	}
	if f.Left, err = d.collide(p, f.Name); err != nil {
		return err
	}
	if f.Numbers, err = d.number(p, f.Left); err != nil {
		return err
	}
	f.parsed = nil
	return d.replaceFile(&f, fmt.Sprintf("policy file %s is applied: %d partitions", f.Name, len(p.Partitions)-len(f.Left)))
}

// replaceFile puts a file, or none, in the place of the one before.
func (d *draft) replaceFile(f *File, words string) error {
	was, before := d.written, policyfile.WriteYAML(d.build())
	k := (*File)(nil).Key()
	mark := len(d.undo)
	if f != nil {
		d.put(f)
	} else {
		d.remove(k)
	}
	if err := d.ownPortsOnly(); err != nil {
		return err
	}
	if mark == 0 && bytes.Equal(before, policyfile.WriteYAML(d.build())) {
		d.revert()
		return nil
	}
	if err := d.aliasesStay(was); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(d.written.claims)) {
		if was.claims[n] == "" {
			if err := d.givenUp(n, Provider); err != nil {
				return err
			}
		}
		if x := d.partitions[n]; x != nil {
			return refuse(Exists, "text", "partition %q has P_Key %v, which %s's partition %q has", d.written.claims[n], n, x.Owner, x.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.written.names)) {
		if k, taken := d.names[name]; taken {
			return refuse(Exists, "text", "partition %q has the name of %s's partition %v", name, d.partitions[k].Owner, k)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(was.claims)) {
		if d.written.claims[n] == "" {
			d.remember(&Removed{PKey: n, Owner: Provider, By: d.By.Name, At: d.At})
		}
	}
	d.takes = d.takes || policy.GivesLess(was.policy, d.written.policy)
	d.say(k, "%s", words)
	return nil
}

// collide holds the partitions of a file against those of the API, and returns the
// names of those that are left to it.
func (d *draft) collide(p *policy.Policy, file string) (left []string, err error) {
	var faults []policy.Fault
	reason := Exists
	for i := range p.Partitions {
		part := &p.Partitions[i]
		x := d.partitions[part.PKey]
		if x != nil && x.PolicyName() == part.Name && policy.SamePartition(part, d.policyPartition(x)) {
			left = append(left, part.Name)
			continue
		}
		fault := func(format string, args ...any) {
			faults = append(faults, policy.Fault{Pos: part.Pos, Found: fmt.Sprintf(format, args...)})
		}
		k, named := d.names[part.Name]
		t := d.rangeOf(part.PKey)
		switch {
		case x != nil:
			fault("partition %q states P_Key %v, which %s's partition %q has", part.Name, part.PKey, x.Owner, x.Name)
		case named:
			fault("partition %q has the name of %s's partition %v", part.Name, d.partitions[k].Owner, k)
		case t != nil:
			reason = Forbidden
			fault("partition %q states P_Key %v, which is tenant %s's", part.Name, part.PKey, t.Name)
		}
	}
	if len(faults) > 0 {
		policy.SortFaults(faults)
		return nil, refuse(reason, "text", "%v", &policy.Error{Name: file, Faults: faults})
	}
	return left, nil
}

// number gives the partitions of a file that state no number one that nobody has: no
// partition of the API, and no tenant.
func (d *draft) number(p *policy.Policy, left []string) (map[string]ib.PKeyBase, error) {
	previous := d.Allocated
	if f := d.written.file; f != nil {
		previous = f.Numbers
	}
	reserved := func(k ib.PKeyBase) bool {
		return d.partitions[k] != nil || d.rangeOf(k) != nil || d.givenUp(k, Provider) != nil
	}
	own := *p
	own.Partitions = slices.DeleteFunc(slices.Clone(p.Partitions), func(x policy.Partition) bool { return slices.Contains(left, x.Name) })
	kept := maps.Clone(previous)
	for name, k := range kept {
		if d.partitions[k] != nil || d.rangeOf(k) != nil {
			delete(kept, name)
		}
	}
	numbers, err := policy.AllocateExcept(&own, kept, reserved)
	if err != nil {
		return nil, refuse(Conflict, "text", "%v", err)
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	return numbers, nil
}

// ownPortsOnly refuses a file that names a port of a tenant.
func (d *draft) ownPortsOnly() error {
	var faults []policy.Fault
	policy.EachNamed(d.written.policy, func(g ib.PortGUID, where string, at policy.Pos) {
		owner := d.Owner(g)
		if owner == Provider {
			return
		}
		whose := "tenant " + owner + "'s"
		if owner == "" {
			whose = "between two owners"
		}
		faults = append(faults, policy.Fault{Pos: at, Found: fmt.Sprintf("%s: port %v is %s", where, g, whose),
			Expected: "a partition that is made by the API, for whose key the tenant can be asked"})
	})
	if len(faults) == 0 {
		return nil
	}
	policy.SortFaults(faults)
	return refuse(Conflict, "text", "%v", &policy.Error{Name: d.written.policy.Source, Faults: faults})
}

// aliasesStay refuses a file by which a GUID that is in a partition gets another
// owner.
func (d *draft) aliasesStay(was written) error {
	now := d.written
	for _, list := range []map[ib.PortGUID]ib.PortGUID{was.aliases, now.aliases} {
		for _, g := range slices.Sorted(maps.Keys(list)) {
			if len(d.in[g]) == 0 || was.port(g) == now.port(g) {
				continue
			}
			after := d.Owner(g)
			d.written = was
			before := d.Owner(g)
			if d.written = now; before != after {
				return refuse(Conflict, "text", "alias GUID %v is in partition %v, and gets another owner with its port %v: remove it from there first", g, d.In(g)[0], now.port(g))
			}
		}
	}
	return nil
}
