package policyfile

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// ConfSizeMax is the largest file that is read, in bytes.
const ConfSizeMax = 64 << 20

// Options are what a reader cannot find in the file itself.
type Options struct {
	// AllowBoth sets Policy.AllowBoth, as OpenSM's allow_both_pkeys does.
	AllowBoth bool
	// IgnoreLevels has definitions put nothing on a service level, as OpenSM has it
	// without its option qos. An mgid may still state one.
	IgnoreLevels bool
}

// Statement is one definition, as it stands in the file.
type Statement struct {
	// Pos is where it begins, Last the line where it ends.
	Pos  policy.Pos
	Last int
	// Name and PKey are those of the partition that it makes or adds to; Auto says that
	// the file does not state the number.
	Name string
	PKey ib.PKeyBase
	Auto bool
	// Members and Groups are how many ports, or words for ports, and groups by mgid it lists.
	Members, Groups int
}

// ReadConf reads a policy in the format of partitions.conf. The name is for messages. The error is a *policy.Error.
func ReadConf(data []byte, name string, opts Options) (*policy.Policy, error) {
	p, _, err := ReadStatements(data, name, opts)
	return p, err
}

// ReadStatements is ReadConf that also lists the definitions in their order.
func ReadStatements(data []byte, name string, opts Options) (*policy.Policy, []Statement, error) {
	r := confReader{
		ignoreLevels: opts.IgnoreLevels,
		policy:       &policy.Policy{Default: policy.Limited, AllowBoth: opts.AllowBoth, AbsentWarns: true},
		byKey:        map[ib.PKeyBase]*numbered{},
		byName:       map[string][]*numbered{},
		nextAuto:     1,
	}
	r.groups.SourceNotes = &r.SourceNotes
	implicit := &numbered{name: policy.DefaultName, key: ib.PKeyBaseDefault, index: -1}
	r.byKey[implicit.key] = implicit
	r.byName[implicit.name] = append(r.byName[implicit.name], implicit)

	src := r.Clean(data, ConfSizeMax)
	if len(r.Faults) == 0 {
		for number, line := range strings.Split(src, "\n") {
			r.line(policy.SourceText{S: line, Pos: policy.Pos{Line: number + 1, Column: 1}})
			if r.Full() {
				break
			}
		}
		if r.open != nil && !r.open.skip {
			r.unclosed(src)
		}
		if !r.started && len(r.Faults) == 0 {
			r.Fault(policy.Pos{}, "at least one partition definition (OpenSM would open the fabric)", "no definition in the file")
		}
	}
	r.dropOverruled()
	p, err := r.Result(r.policy, name)
	return p, r.statements, err
}

// unclosed judges a file that ends without the last ';'. OpenSM takes that;
// but a file that was cut short may give more than the whole would (a member
// without its "=limited", a list without its end), so that it is taken only
// where its last line is whole.
func (r *confReader) unclosed(src string) {
	const found = "the last definition is not closed by ';': the file may be cut short"
	trimmed := strings.TrimRight(src, " \t\r\n")
	if strings.HasSuffix(src, "\n") && !strings.HasSuffix(trimmed, ",") {
		r.Warn(r.open.group.Pos, found)
		return
	}
	r.Fault(r.open.group.Pos, "';' at its end", found)
}

// confReader reads a partitions.conf line by line.
type confReader struct {
	policy.SourceNotes
	policy *policy.Policy
	groups policy.SourceGroups
	// byKey and byName find the partitions as OpenSM would: it numbers the
	// automatic ones while it reads, and knows several by one name.
	byKey    map[ib.PKeyBase]*numbered
	byName   map[string][]*numbered
	nextAuto ib.PKeyBase

	// open is the statement that is being read, nil between statements.
	open *statement
	// started reports whether there was a definition, good or bad.
	started bool
	members int

	ignoreLevels bool
	statements   []Statement
}

// numbered is a partition as OpenSM knows it while it reads.
type numbered struct {
	name string
	key  ib.PKeyBase
	auto bool
	pos  policy.Pos
	// index into Policy.Partitions, -1 while only implied.
	index int
}

// statement is one definition, from its name to its semicolon.
type statement struct {
	confFlags
	// partition is nil when the definition had a fault: its properties are
	// then read for their faults only.
	partition *numbered
	// skip leaves the properties unread: the definition made no sense.
	skip bool
}

func (r *confReader) line(line policy.SourceText) {
	rest, _, _ := line.Cut('#')
	for {
		rest = rest.Trim()
		if rest.S == "" {
			return
		}
		piece, tail, closed := rest.Cut(';')
		if r.open == nil {
			piece = r.definition(piece)
		}
		if !r.open.skip {
			r.properties(piece)
		}
		if n := len(r.statements); n > 0 && r.open.partition != nil {
			r.statements[n-1].Last = line.Pos.Line
		}
		if closed {
			r.open = nil
		}
		rest = tail
	}
}

// definition opens a statement and returns what stands after its colon.
func (r *confReader) definition(piece policy.SourceText) policy.SourceText {
	r.started = true
	r.open = &statement{}
	head, properties, found := piece.Cut(':')
	if !found {
		r.open.skip = true
		if piece.Trim().S == "" {
			r.Fault(piece.Pos, "a partition definition", "';' without a definition before it")
		} else {
			r.Fault(piece.Trim().Pos, "name, P_Key, flags and ':' on one line", "%q without ':'", piece.Trim().S)
		}
		return properties
	}
	title, flags, more := head.Cut(',')
	r.open.confFlags = r.headerFlags(flags, more)
	r.open.partition = r.partition(title)
	if p := r.open.partition; p != nil {
		r.apply(r.open)
		r.statements = append(r.statements, Statement{Pos: title.Trim().Pos, Name: p.name, PKey: p.key, Auto: p.auto})
	}
	return properties
}

// partition finds or makes the partition that a definition's title names.
func (r *confReader) partition(title policy.SourceText) *numbered {
	name, id, hasID := title.Cut('=')
	name, id = name.Trim(), id.Trim()
	if !hasID && name.S != "" && name.S[0] >= '0' && name.S[0] <= '9' {
		name, id, hasID = policy.SourceText{Pos: name.Pos}, name, true
	}
	if name.S != "" {
		if bad := policy.BadName(name.S); bad != "" {
			r.Fault(name.Pos, policy.NameRule, "%s", bad)
			return nil
		}
	}
	var key ib.PKeyBase
	if hasID {
		v, ok := r.number(id, "P_Key", 0, 0xFFFF)
		if !ok {
			return nil
		}
		if key = ib.PKey(v).Base(); ib.PKey(v).IsFull() && key != 0 {
			r.Warn(id.Pos, "P_Key %s: membership is per port, so this is partition %v", id.S, key)
		}
	}
	if key == 0 {
		return r.automatic(name)
	}
	return r.explicit(name, key)
}

// explicit finds or makes the partition with a stated number.
func (r *confReader) explicit(name policy.SourceText, key ib.PKeyBase) *numbered {
	p := r.byKey[key]
	switch {
	case p == nil:
		return r.add(&numbered{name: name.S, key: key, pos: name.Pos})
	case p.auto:
		r.Fault(name.Pos, fmt.Sprintf("another P_Key here, or a stated one for %q: OpenSM would merge the two", p.name),
			"P_Key %v, which %q at %v gets automatically", key, p.name, p.pos)
		return nil
	case name.S != "" && p.name != name.S:
		r.Warn(name.Pos, "partition %v is already named %q: the first name stays, and %q joins it", key, p.name, name.S)
	}
	return p
}

// automatic finds the partition of that name, or makes one with the number
// that OpenSM would choose. Policy leaves the number to Allocate.
func (r *confReader) automatic(name policy.SourceText) *numbered {
	if same := r.byName[name.S]; len(same) > 0 && name.S != "" {
		p := slices.MinFunc(same, func(a, b *numbered) int {
			return int(bits.ReverseBytes16(uint16(a.key))) - int(bits.ReverseBytes16(uint16(b.key)))
		})
		if len(same) > 1 {
			r.Warn(name.Pos, "%d partitions are named %q: taken for %v, as OpenSM does", len(same), name.S, p.key)
		}
		return p
	}
	for r.byKey[r.nextAuto] != nil {
		r.nextAuto++
	}
	if r.nextAuto >= ib.PKeyBaseDefault {
		r.Fault(name.Pos, "a stated P_Key", "no free number left for partition %q", name.S)
		return nil
	}
	if name.S == "" {
		r.Warn(name.Pos, "a partition with neither name nor P_Key: its number depends on its place in the file")
	}
	return r.add(&numbered{name: name.S, key: r.nextAuto, auto: true, pos: name.Pos})
}

func (r *confReader) add(p *numbered) *numbered {
	if p.name == "" {
		p.name = fmt.Sprintf("%04x", uint16(p.key))
	}
	p.index = -1
	r.byKey[p.key] = p
	r.byName[p.name] = append(r.byName[p.name], p)
	return p
}

// apply puts the statement's partition into the policy, with the groups that
// its flags ask for.
func (r *confReader) apply(s *statement) {
	p := s.partition
	if p.index < 0 {
		p.index = len(r.policy.Partitions)
		part := policy.Partition{Name: p.name, PKey: p.key, SL: s.group.SL, Pos: p.pos}
		if p.auto {
			part.PKey = 0
		}
		if same := r.byName[p.name]; same[0] != p {
			part.Name = fmt.Sprintf("%s-%v", p.name, p.key)
			r.Warn(p.pos, "another partition is named %q too: this one is called %q here", p.name, part.Name)
		}
		r.policy.Partitions = append(r.policy.Partitions, part)
	}
	part := &r.policy.Partitions[p.index]
	if part.SL != s.group.SL {
		r.Warn(s.group.Pos, "SL %d for partition %q: the last definition decides", s.group.SL, part.Name)
		part.SL = s.group.SL
	}
	if !s.ipoib {
		return
	}
	g := s.group
	g.MGID = policy.Broadcast(policy.ScopeLink)
	if g.QKey == 0 {
		g.QKey = policy.QKeyIPoIB
	}
	if s.scopes != 0 && s.scopes != 1<<policy.ScopeLink {
		r.Warn(g.Pos, "scope does not apply to the broadcast group, which is link-local")
	}
	for _, other := range part.Multicast {
		if other.MGID == g.MGID {
			r.Warn(g.Pos, "the broadcast group of %q stays as it was first defined, at %v", part.Name, other.Pos)
			return
		}
	}
	r.groups.Add(p.index, part, g)
}

// dropOverruled removes each member whose selector comes again later.
func (r *confReader) dropOverruled() {
	for i := range r.policy.Partitions {
		part := &r.policy.Partitions[i]
		last := make(map[policy.Selector]int, len(part.Members))
		for at, m := range part.Members {
			if first, again := last[m.Selector]; again {
				r.Warn(m.Pos, "%v again in %q, as at %v: the last one decides", m.Selector, part.Name, part.Members[first].Pos)
			}
			last[m.Selector] = at
		}
		kept := part.Members[:0]
		for at, m := range part.Members {
			if last[m.Selector] == at {
				kept = append(kept, m)
			}
		}
		part.Members = kept
	}
}
