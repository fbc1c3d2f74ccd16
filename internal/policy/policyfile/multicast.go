package policyfile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// scopeNames are the names of multicast scopes.
var scopeNames = map[string]uint8{"link": policy.ScopeLink, "site": 5, "organization": 8, "global": 0xE}

// groupFields are the readers of the parameters that ipoib and multicast share.
func (r *yamlReader) groupFields(g *policy.MulticastGroup, qkeyMin uint64) map[string]func(ast.Node) {
	return map[string]func(ast.Node){
		"mtu": func(v ast.Node) {
			n := r.Numeral(v, "mtu", 0, math.MaxInt32)
			mtu, err := ib.MTUFromBytes(int(n))
			if err != nil {
				r.Fault(YAMLPos(v), "256, 512, 1024, 2048 or 4096 bytes", "%s for mtu", Describe(v))
			}
			g.MTU = mtu
		},
		"rate":       func(v ast.Node) { g.Rate = r.rate(v, "rate") },
		"sl":         func(v ast.Node) { g.SL = ib.SL(r.Numeral(v, "sl", 0, policy.SLMax)) },
		"qkey":       func(v ast.Node) { g.QKey = ib.QKey(r.Numeral(v, "qkey", qkeyMin, math.MaxUint32)) },
		"tclass":     func(v ast.Node) { g.TClass = uint8(r.Numeral(v, "tclass", 0, math.MaxUint8)) },
		"flow_label": func(v ast.Node) { g.FlowLabel = uint32(r.Numeral(v, "flow_label", 0, policy.FlowLabelMax)) },
	}
}

// rate reads a rate in Gb/s, with one decimal at most.
func (r *yamlReader) rate(node ast.Node, name string) ib.Rate {
	const want = "the rate of an InfiniBand link in Gb/s, such as 2.5, 10, 40 or 100"
	t, ok := r.Scalar(node, name, want)
	if !ok {
		return 0
	}
	whole, part, _ := strings.Cut(t.S, ".")
	tenths, err := strconv.ParseUint(whole+(part + "0")[:1], 10, 31)
	rate, err2 := ib.RateFromGbps(int(tenths))
	if err != nil || err2 != nil || len(part) > 1 {
		r.Fault(t.Pos, want, "%q for %s", t.S, name)
	}
	return rate
}

// scope reads a name or number of a scope.
func (r *yamlReader) scope(node ast.Node) uint8 {
	if t, ok := node.(*ast.StringNode); ok {
		if _, known := scopeNames[t.Value]; !known {
			r.Fault(YAMLPos(node), policy.OrList(slices.Sorted(maps.Keys(scopeNames)))+" or a number", "%s for scope", Describe(node))
		}
		return scopeNames[t.Value]
	}
	return uint8(r.Numeral(node, "scope", 1, policy.ScopeMax))
}

// ipoib adds the broadcast groups of the partition.
func (r *yamlReader) ipoib(node ast.Node, part *policy.Partition) {
	g := policy.MulticastGroup{MGID: policy.Broadcast(policy.ScopeLink), MTU: policy.DefaultMTU, Rate: part.UsualRate(), SL: part.SL, QKey: policy.QKeyIPoIB, Pos: YAMLPos(node)}
	scopes := []uint8{policy.ScopeLink}
	if _, plain := node.(*ast.BoolNode); plain {
		if !r.Truth(node, "ipoib") {
			return
		}
	} else {
		readers := r.groupFields(&g, 1)
		readers["scope"] = func(v ast.Node) {
			if several, ok := v.(*ast.SequenceNode); ok {
				scopes = nil
				for _, one := range several.Values {
					scopes = append(scopes, r.scope(one))
				}
				return
			}
			scopes = []uint8{r.scope(v)}
		}
		r.Fields(node, "ipoib", readers)
	}
	for _, scope := range scopes {
		g.MGID = policy.Broadcast(scope)
		r.groups.Add(len(r.policy.Partitions), part, g)
	}
}

// multicast adds one group. An IPoIB group takes MTU and rate from the first
// IPoIB group of the partition, if there is one.
func (r *yamlReader) multicast(node ast.Node, part *policy.Partition) {
	g := policy.MulticastGroup{MTU: policy.DefaultMTU, Rate: part.UsualRate(), SL: part.SL, Pos: YAMLPos(node)}
	faults, stated := len(r.Faults), false
	// The address comes first, whatever the order of the keys: defaults hang on it.
	address := func(v ast.Node) {
		stated = true
		t, _ := r.Scalar(v, "mgid", "a multicast GID")
		mgid, err := ib.ParseGID(t.S)
		if err != nil || !mgid.IsMulticast() || mgid[1]&0x0F == 0 {
			r.Fault(YAMLPos(v), "a multicast GID (an IPv6 address that begins with ff) with a scope", "%s for mgid", Describe(v))
			return
		}
		g.MGID, g.Pos = mgid, YAMLPos(v)
		if err := g.ClearPKey(part.PKey); err != nil {
			r.Fault(g.Pos, fmt.Sprintf("0, or the partition's pkey (%v)", part.PKey), "%v", err)
		}
	}
	if pairs, ok := node.(ast.MapNode); ok {
		for i := pairs.MapRange(); i.Next(); {
			if key, ok := i.Key().(*ast.StringNode); ok && key.Value == "mgid" && !stated {
				address(i.Value())
			}
		}
	}
	qkeyMin := uint64(0)
	if g.IsIPoIB() {
		g.QKey, qkeyMin = policy.QKeyIPoIB, 1
		if i := slices.IndexFunc(part.Multicast, policy.MulticastGroup.IsIPoIB); i >= 0 {
			g.MTU, g.Rate = part.Multicast[i].MTU, part.Multicast[i].Rate
		}
	}
	readers := r.groupFields(&g, qkeyMin)
	readers["mgid"] = func(ast.Node) {}
	r.Fields(node, "a multicast group", readers)
	if !stated {
		r.Fault(YAMLPos(node), "mgid", "a multicast group without an address")
	}
	if len(r.Faults) == faults {
		r.groups.Add(len(r.policy.Partitions), part, g)
	}
}
