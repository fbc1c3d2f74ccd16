package preview

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// Set is a named set of end ports.
type Set struct {
	Name  string
	Ports []ib.PortGUID
}

// Input is what Look looks at.
type Input struct {
	Fabric  *observed.Fabric
	Desired *observed.Desired
	Plan    *plan.Plan
	// Groups are the names to tell who can talk by; without any, partitions
	// serve.
	Groups []Set
	// Multicast are the multicast groups as they stand; nil when nothing is known
	// of them.
	Multicast *group.State
	// Partitions are those of the new policy, with their multicast groups.
	Partitions []observed.Partition
}

// Preview is what a plan will do.
type Preview struct {
	// Changes reports whether anything is written at all.
	Changes bool `json:"changes"`
	// Ports are the ports whose keys, enforcement or alias GUIDs change, breadth first
	// from the manager.
	Ports    []Port    `json:"ports"`
	SMPs     SMPs      `json:"smps"`
	Capacity Capacity  `json:"capacity"`
	Reach    Reach     `json:"reach"`
	Findings []Finding `json:"findings"`
	// Multicast lists the changes of multicast groups, by MGID.
	Multicast []GroupChange `json:"multicast"`
	// Unread counts the P_Key tables of ports under change that could not be
	// read whole.
	Unread int `json:"unread_tables"`
}

// Port is a port whose keys, enforcement or alias GUIDs change.
type Port struct {
	Node string      `json:"node"`
	GUID ib.NodeGUID `json:"node_guid"`
	Num  ib.PortNum  `json:"port"`
	// PortGUID is that of an end port, else 0.
	PortGUID ib.PortGUID `json:"port_guid"`
	// Role is "end port" or "switch port".
	Role string `json:"role"`
	// Peer is what a switch port is cabled to.
	Peer string `json:"peer,omitempty"`
	Keys []Key  `json:"keys"`
	// Cap, Before and After are entries of the P_Key table: how many there
	// are, and how many are used.
	Cap         int           `json:"cap"`
	Before      int           `json:"used_before"`
	After       int           `json:"used_after"`
	Enforcement []Enforcement `json:"enforcement"`
	// RawFilters are filters of raw packets that change.
	RawFilters []Enforcement `json:"raw_filters"`
	Aliases    []Alias       `json:"aliases"`
}

// Alias is a change of one entry of a table of GUIDs: What is Added or Removed,
// both for an entry that gets another GUID.
type Alias struct {
	What  string      `json:"what"`
	Index int         `json:"index"`
	GUID  ib.PortGUID `json:"guid"`
}

// What happens to a key.
const (
	Added      = "added"
	Removed    = "removed"
	Moved      = "moved"      // to another index
	Membership = "membership" // full to limited, or the reverse
)

// Key is a change of one key of a table. Index is where the key will be, or,
// when it is removed, was.
type Key struct {
	What  string  `json:"what"`
	Index int     `json:"index"`
	PKey  ib.PKey `json:"pkey"`
	// From is the key that gives way to PKey when What is Membership; FromIndex
	// is where the key was when it moves, else equal to Index.
	From      ib.PKey `json:"from_pkey"`
	FromIndex int     `json:"from_index"`
}

// Enforcement is an enforcement bit, or a raw filter, that changes.
type Enforcement struct {
	// Direction is "inbound" or "outbound".
	Direction string `json:"direction"`
	On        bool   `json:"on"`
}

// SMPs is what carrying out the plan sends when nothing is lost.
type SMPs struct {
	Set int `json:"set"`
	// ReadBack are SubnGets that follow a write.
	ReadBack    int         `json:"read_back"`
	ByAttribute []Attribute `json:"by_attribute"`
}

// Attribute counts the writes of one attribute.
type Attribute struct {
	Attribute string `json:"attribute"`
	Set       int    `json:"set"`
	ReadBack  int    `json:"read_back"`
}

// Capacity is the room that the fullest tables have left afterwards.
type Capacity struct {
	EndPorts    *Room `json:"end_ports"`
	SwitchPorts *Room `json:"switch_ports"`
}

// Room is a table and its free entries.
type Room struct {
	Port string `json:"port"`
	Cap  int    `json:"cap"`
	Left int    `json:"left"`
}

// Look works out what a plan will do.
func Look(in Input) (*Preview, error) {
	p := &Preview{Changes: in.Plan.Len() > 0, Ports: []Port{}, Findings: []Finding{}}
	p.groups(&in)
	if err := p.count(in.Plan); err != nil {
		return nil, err
	}
	for _, n := range in.Fabric.FromManager() {
		for i := range n.Ports {
			if q := &n.Ports[i]; q.Reached && (i > 0 || n.Switch != nil) {
				p.lookAt(q, in.Desired.Port(q))
			}
		}
	}
	x := newIndex(in)
	p.Reach = x.reach()
	p.Findings = append(p.Findings, x.findings()...)
	return p, nil
}

// count counts the packets. What a write holds is settled when it is sent;
// whether it is read back is not.
func (p *Preview) count(planned *plan.Plan) error {
	p.SMPs.ByAttribute = []Attribute{}
	for _, s := range planned.Stages {
		for _, op := range s.Ops {
			w, err := planned.Fill(op)
			if err != nil {
				return err
			}
			name := smp.AttributeName(op.Attribute)
			at := slices.IndexFunc(p.SMPs.ByAttribute, func(a Attribute) bool { return a.Attribute == name })
			if at < 0 {
				at = len(p.SMPs.ByAttribute)
				p.SMPs.ByAttribute = append(p.SMPs.ByAttribute, Attribute{Attribute: name})
			}
			p.SMPs.Set++
			p.SMPs.ByAttribute[at].Set++
			if w.ReadBack {
				p.SMPs.ReadBack++
				p.SMPs.ByAttribute[at].ReadBack++
			}
		}
	}
	return nil
}

// lookAt compares what a port holds with what it ought to.
func (p *Preview) lookAt(q *observed.Port, want *observed.DesiredPort) {
	now, after := q.PKeys, want.PKeys
	if after == nil {
		after = now
	}
	x := Port{
		Node: q.Node.Name(), GUID: q.Node.GUID(), Num: q.Num, Role: "end port",
		Keys: keys(now, after), Cap: q.PKeyCap(), Before: used(now), After: used(after), Enforcement: []Enforcement{}, RawFilters: []Enforcement{}, Aliases: []Alias{},
	}
	if q.IsEnd() {
		x.PortGUID = q.GUID
		x.Aliases = aliases(q, want.GUIDs)
		p.Capacity.EndPorts = tighter(p.Capacity.EndPorts, q, x.After)
	} else {
		x.Role = "switch port"
		if want.PKeys != nil || q.FacesEnd() {
			p.Capacity.SwitchPorts = tighter(p.Capacity.SwitchPorts, q, x.After)
		}
	}
	if q.Peer != nil {
		x.Peer = q.Peer.String()
	}
	info := &want.Info
	differ := (want.Elements &^ q.Forgets).Differ(&q.Info, info)
	if differ&observed.ElementPartitionEnforcementInbound != 0 {
		x.Enforcement = append(x.Enforcement, Enforcement{"inbound", info.PartitionEnforcementInbound})
	}
	if differ&observed.ElementPartitionEnforcementOutbound != 0 {
		x.Enforcement = append(x.Enforcement, Enforcement{"outbound", info.PartitionEnforcementOutbound})
	}
	if differ&observed.ElementFilterRawInbound != 0 {
		x.RawFilters = append(x.RawFilters, Enforcement{"inbound", info.FilterRawInbound})
	}
	if differ&observed.ElementFilterRawOutbound != 0 {
		x.RawFilters = append(x.RawFilters, Enforcement{"outbound", info.FilterRawOutbound})
	}
	if want.PKeys != nil && !q.PKeysKnown() {
		p.Unread++
	}
	if len(x.Keys) > 0 || len(x.Enforcement) > 0 || len(x.RawFilters) > 0 || len(x.Aliases) > 0 {
		p.Ports = append(p.Ports, x)
	}
}

// aliases lists what changes in a table of GUIDs, by index; nil leaves it alone.
func aliases(q *observed.Port, want []ib.PortGUID) []Alias {
	out := []Alias{}
	for block := range q.GUIDBlocks() {
		if want == nil {
			break
		}
		now, _ := plan.HeldGUIDs(q, block)
		after := plan.WantedGUIDs(q, want, block)
		for i := range now {
			index := block*smp.GUIDsPerBlock + i
			if now[i] != after[i] && now[i] != 0 {
				out = append(out, Alias{Removed, index, ib.PortGUID(now[i])})
			}
			if now[i] != after[i] && after[i] != 0 {
				out = append(out, Alias{Added, index, ib.PortGUID(after[i])})
			}
		}
	}
	return out
}

func used(t []ib.PKey) (n int) {
	for _, k := range t {
		if k.IsValid() {
			n++
		}
	}
	return n
}

func tighter(r *Room, p *observed.Port, used int) *Room {
	left := p.PKeyCap() - used
	if r != nil && r.Left <= left {
		return r
	}
	return &Room{p.String(), p.PKeyCap(), left}
}

func at(t []ib.PKey, i int) ib.PKey {
	if i < len(t) {
		return t[i]
	}
	return ib.PKeyInvalid
}

// keys lists what changes from one table to another, by index.
func keys(now, after []ib.PKey) []Key {
	out := []Key{}
	for i := range max(len(now), len(after)) {
		from, to := at(now, i), at(after, i)
		if from == to {
			continue
		}
		if from.IsValid() && to.IsValid() && from.Base() == to.Base() {
			out = append(out, Key{Membership, i, to, from, i})
			continue
		}
		if to.IsValid() {
			was := slices.IndexFunc(now, func(k ib.PKey) bool { return k.IsValid() && k.Base() == to.Base() })
			if was < 0 || at(after, was) == now[was] {
				out = append(out, Key{Added, i, to, ib.PKeyInvalid, i})
			} else {
				out = append(out, Key{Moved, i, to, now[was], was})
			}
		}
		if from.IsValid() && !arrives(now, after, from.Base()) {
			out = append(out, Key{Removed, i, from, ib.PKeyInvalid, i})
		}
	}
	return out
}

// arrives reports whether a partition's key is added at an index.
func arrives(now, after []ib.PKey, base ib.PKeyBase) bool {
	for i, k := range after {
		if k.IsValid() && k.Base() == base && at(now, i).Base() != base {
			return true
		}
	}
	return false
}
