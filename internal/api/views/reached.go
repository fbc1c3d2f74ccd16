// This file tells callers of the API whom an end port can talk with, and why or why not:
// the provider all of it, a tenant as far as its own ports and partitions go.

package views

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// EndPort is an end port.
type EndPort struct {
	GUID string `json:"guid"`
	Name string `json:"name" doc:"what its node says of itself, and the number of the port where there are several"`
	LID  int    `json:"lid"`
}

// Answer is why two end ports can or cannot talk.
type Answer struct {
	From     EndPort   `json:"from"`
	To       EndPort   `json:"to"`
	Cause    string    `json:"cause" enum:"unknown,talk,no-partition,both-limited,stopped"`
	Sentence string    `json:"sentence" doc:"the cause in words; a tenant is told of partitions that it sees"`
	Shared   []Shared  `json:"shared" doc:"partitions of which both hold a key"`
	Remedies []Remedy  `json:"remedies" doc:"changes, any one of which lets the two talk"`
	ReadAt   time.Time `json:"read_at" doc:"when the fabric was read"`
}

// Shared is a partition of which two ports hold a key.
type Shared struct {
	PKey     string `json:"pkey"`
	Name     string `json:"name"`
	FromFull bool   `json:"from_full" doc:"the first holds the full key"`
	ToFull   bool   `json:"to_full" doc:"the second holds the full key"`
	There    *Path  `json:"there,omitempty" doc:"what becomes of a packet from the first to the second; absent where the keys do not match"`
	Back     *Path  `json:"back,omitempty" doc:"what becomes of a packet from the second to the first"`
}

// Path is what becomes of a packet.
type Path struct {
	Disposition string `json:"disposition"`
	Reason      string `json:"reason,omitempty" doc:"what decided, and where; for the provider"`
	Hops        []Hop  `json:"hops" doc:"for the provider"`
}

// Hop is a node on the way of a packet.
type Hop struct {
	Node   string  `json:"node" doc:"node GUID"`
	Name   string  `json:"name"`
	In     int     `json:"in" doc:"port by which the packet comes; 0 where it starts"`
	Out    int     `json:"out" doc:"port by which it leaves; 0 where it ends"`
	VL     *int    `json:"vl,omitempty" doc:"virtual lane on which it leaves"`
	Checks []Check `json:"checks"`
}

// Check is a rule that was applied to a packet.
type Check struct {
	Port   int    `json:"port"`
	Check  string `json:"check"`
	Result string `json:"result" doc:"pass, stop, off or unknown"`
	Entry  string `json:"entry" doc:"what decided: a value, or an entry of a table"`
}

// Remedy is a change that would let two ports talk.
type Remedy struct {
	Kind string `json:"kind" enum:"add-member,make-full,repair"`
	PKey string `json:"pkey,omitempty"`
	Name string `json:"name,omitempty" doc:"of the partition"`
	Port string `json:"port,omitempty" doc:"GUID of the port that becomes a member, or a full one"`
	Text string `json:"text"`
	File bool   `json:"file,omitempty" doc:"the policy file has the partition: the change is made there"`
}

// Peer is an end port whose keys match those of another.
type Peer struct {
	EndPort
	Talks bool   `json:"talks" doc:"packets of a partition get through both ways"`
	Over  []Over `json:"over"`
}

// Over is a partition over which two ports may talk.
type Over struct {
	PKey  string `json:"pkey"`
	Name  string `json:"name"`
	There string `json:"there" doc:"what becomes of a packet to the peer: delivered, or what stops it"`
	Back  string `json:"back"`
}

// WhyView is how a caller looks at a snapshot. Virtual lanes are left out where the manager
// does not read them: nobody's question makes it read more. A proof, if there is one, names
// the partitions of the policy.
func WhyView(s *resource.State, c resource.Caller, snap *snapshot.Snapshot, proof *isolation.Proof, sl ib.SL) reach.View {
	v := reach.View{Names: reach.Names{}, SL: sl, AnyVL: !slices.Contains(snap.Asked, snapshot.AskedQoS)}
	whole := c.IsProvider() && c.Keys.First == 0
	if whole && proof != nil {
		for _, p := range proof.Pairs {
			v.Names[p.PKeyA], v.Names[p.PKeyB] = p.A, p.B
		}
	}
	declared := s.Declared()
	v.Takes = func(k ib.PKeyBase, g ib.PortGUID) bool { // the policy file does not count for the port of a tenant
		return s.Partition(k) != nil || whole && declared[k] != nil && s.Owner(g) == resource.Provider
	}
	for _, p := range s.Visible(c) {
		v.Names[p.PKey] = p.Name
	}
	if whole {
		return v
	}
	v.Brief = true
	v.Sees = func(p *observed.Port, k ib.PKeyBase) bool { return s.SeesKey(c, p.GUID, k) }
	return v
}

// EndOf is an end port for the API.
func EndOf(p *observed.Port) EndPort { return EndPort{p.GUID.String(), p.String(), int(p.Info.LID)} }

// AnswerOf is why two end ports can or cannot talk, read at a time, for the API. File
// reports whether a partition is one of the policy file.
func AnswerOf(from, to *observed.Port, v reach.View, at time.Time, file func(ib.PKeyBase) bool) Answer {
	a := reach.Explain(from, to, v)
	out := Answer{From: EndOf(from), To: EndOf(to), Cause: a.Cause.String(), Sentence: a.Sentence, Shared: []Shared{}, Remedies: []Remedy{}, ReadAt: at}
	for _, s := range a.Shared {
		out.Shared = append(out.Shared, Shared{s.PKey.String(), s.Name, s.FromFull, s.ToFull, pathOf(s.There), pathOf(s.Back)})
	}
	for _, r := range a.Remedies {
		x := Remedy{Kind: r.Kind, Name: r.Name, Text: r.Text}
		if r.PKey != 0 {
			x.PKey, x.Port, x.File = r.PKey.String(), r.Port.String(), file(r.PKey)
		}
		out.Remedies = append(out.Remedies, x)
	}
	return out
}

func pathOf(t *reach.Trace) *Path {
	if t == nil {
		return nil
	}
	out := &Path{t.Disposition.String(), t.Reason, []Hop{}}
	for _, h := range t.Hops {
		x := Hop{Node: h.Node.String(), Name: h.Name, In: int(h.In), Out: int(h.Out), Checks: []Check{}}
		if h.VL != nil {
			vl := int(*h.VL)
			x.VL = &vl
		}
		for _, c := range h.Checks {
			x.Checks = append(x.Checks, Check{int(c.Port), c.Rule, c.Result, c.Entry})
		}
		out.Hops = append(out.Hops, x)
	}
	return out
}

// PeersOf are the peers of an end port for the API.
func PeersOf(list []reach.Peer) []Peer {
	out := []Peer{}
	for _, p := range list {
		x := Peer{EndOf(p.Port), p.Talks(), []Over{}}
		for _, o := range p.Over {
			x.Over = append(x.Over, Over{o.PKey.String(), o.Name, o.There.String(), o.Back.String()})
		}
		out = append(out, x)
	}
	return out
}
