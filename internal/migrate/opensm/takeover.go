package opensm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/preview"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Takeover is what a takeover would change.
type Takeover struct {
	LIDs   LIDs   `json:"lids"`
	Routes Routes `json:"routes"`
	// Paths are those from one end port of a CA or router to another, for the base LID.
	Paths Paths `json:"paths"`
	PKeys PKeys `json:"pkeys"`
	// Checks counts switch ports by what becomes of their checks of P_Keys: those that
	// check in more directions than before, and in fewer.
	Checks Checks `json:"checks"`
	// LinksUp is how many ports are brought to Armed or Active. No link is taken down.
	LinksUp int `json:"links_up"`
	// Writes are the writes in their order; OwnKeys is how many ports get an M_Key of their
	// own before that, with one more write each.
	Writes  []Write `json:"writes"`
	OwnKeys int     `json:"own_m_keys"`
	Notice  Notice  `json:"notice"`
}

// LIDs says how many end ports keep their LIDs.
type LIDs struct {
	Stay int `json:"stay"`
	// New have none so far.
	New     int   `json:"new"`
	Changes []LID `json:"changes"`
}

// LID is the LID of an end port that changes.
type LID struct {
	Port string      `json:"port"`
	GUID ib.PortGUID `json:"port_guid"`
	From ib.LID      `json:"from"`
	To   ib.LID      `json:"to"`
}

// Routes counts entries of forwarding tables for the LIDs that are in use.
type Routes struct {
	Stay    int `json:"stay"`
	Changes int `json:"changes"`
	// New lead somewhere for the first time, or were not read.
	New int `json:"new"`
}

// Paths counts pairs of hosts.
type Paths struct {
	Stay    int `json:"stay"`
	Changes int `json:"changes"`
	// New did not arrive before.
	New int `json:"new"`
}

// PKeys counts keys in tables of end ports.
type PKeys struct {
	Stay       int `json:"stay"`
	Added      int `json:"added"`
	Removed    int `json:"removed"`
	Moved      int `json:"moved"`
	Membership int `json:"membership"`
}

// Checks counts switch ports.
type Checks struct {
	Begin int `json:"begin"`
	End   int `json:"end"`
}

// Write is one Set.
type Write struct {
	Stage     string `json:"stage"`
	Port      string `json:"port"`
	Attribute string `json:"attribute"`
	Modifier  uint32 `json:"modifier"`
	// What names the elements that change, or says which part of a table is written.
	What string `json:"what"`
}

// Notice is who would notice.
type Notice struct {
	// Keys are the end ports whose P_Key tables change.
	Keys []string `json:"pkeys"`
	// Reregister counts the hosts that are asked to register with subnet administration
	// again, Manager those that are told another LID of the manager.
	Reregister int `json:"reregister"`
	Manager    int `json:"manager"`
	// Paths counts the hosts from which packets to another take another way.
	Paths int `json:"paths"`
}

// Look compares.
func Look(f *observed.Fabric, d *observed.Desired, p *plan.Plan, v *preview.Preview, ownKeys bool) *Takeover {
	t := &Takeover{LIDs: LIDs{Changes: []LID{}}, Writes: []Write{}, Notice: Notice{Keys: []string{}}}
	ends := f.EndPorts()
	for _, q := range ends {
		t.port(q, d.Port(q))
		if ownKeys && q.Reached {
			t.OwnKeys++
		}
	}
	t.keys(ends, v)
	t.routes(f, d, ends)
	guarded := map[*observed.Port]bool{} // by a write of its own
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			t.Writes = append(t.Writes, Write{s.Name, op.Port.String(), smp.AttributeName(op.Attribute), op.Modifier, describe(op, d, guarded)})
			if op.Kind == plan.Activate {
				t.LinksUp++
			}
		}
	}
	slices.SortStableFunc(t.LIDs.Changes, func(a, b LID) int { return cmp.Compare(a.GUID, b.GUID) })
	return t
}

// port counts the LID of an end port, and what it is asked and told.
func (t *Takeover) port(q *observed.Port, want *observed.DesiredPort) {
	held, to := ib.LID(0), ib.LID(0)
	if q.InfoRead {
		held = q.Info.LID
	}
	if to = want.Info.LID; want.Elements&observed.ElementLID == 0 {
		to = held
	}
	switch {
	case held == to:
		t.LIDs.Stay++
	case held == 0:
		t.LIDs.New++
	default:
		t.LIDs.Changes = append(t.LIDs.Changes, LID{q.String(), q.GUID, held, to})
	}
	if q.Node.Switch != nil {
		return
	}
	if want.Reregister {
		t.Notice.Reregister++
	}
	if want.Elements&observed.ElementMasterSMLID != 0 && q.Info.MasterSMLID != want.Info.MasterSMLID {
		t.Notice.Manager++
	}
}

// keys counts P_Keys.
func (t *Takeover) keys(ends []*observed.Port, v *preview.Preview) {
	for _, q := range ends {
		for _, k := range q.PKeys {
			if k.IsValid() {
				t.PKeys.Stay++
			}
		}
	}
	for i := range v.Ports {
		x := &v.Ports[i]
		if x.PortGUID == 0 {
			on, off := 0, 0
			for _, e := range x.Enforcement {
				if e.On {
					on++
				} else {
					off++
				}
			}
			if on > 0 {
				t.Checks.Begin++
			}
			if off > 0 {
				t.Checks.End++
			}
			continue
		}
		if len(x.Keys) > 0 {
			t.Notice.Keys = append(t.Notice.Keys, x.Node)
		}
		for _, k := range x.Keys {
			switch k.What {
			case preview.Added:
				t.PKeys.Added++
				continue
			case preview.Removed:
				t.PKeys.Removed++
			case preview.Moved:
				t.PKeys.Moved++
			default:
				t.PKeys.Membership++
			}
			t.PKeys.Stay--
		}
	}
}

// describe says what a write changes. What makes a switch port guard has a write before the
// others.
func describe(op plan.Op, d *observed.Desired, guarded map[*observed.Port]bool) string {
	switch op.Attribute {
	case smp.AttrPortInfo:
		differ := plan.Differing(op.Port, d)
		switch {
		case op.Kind == plan.Activate:
			return "PortState Active"
		case op.Kind == plan.Counters:
			return join(observed.ElementViolations.Names())
		case op.Kind == plan.Enforce:
			guarded[op.Port] = true
			return join((differ & observed.ElementGuard).Names())
		case guarded[op.Port]:
			differ &^= observed.ElementGuard
		}
		names := differ.Names()
		if d.Port(op.Port).Reregister {
			names = append(names, "ClientReregister")
		}
		return join(names)
	case smp.AttrLinearForwardingTable, smp.AttrRandomForwardingTable, smp.AttrPKeyTable, smp.AttrMulticastForwardingTable:
		return fmt.Sprintf("block %d", op.Modifier&blockBits(op.Attribute))
	}
	return ""
}

// blockBits are the bits of the modifier that number the block.
func blockBits(a mad.AttributeID) uint32 {
	if a == smp.AttrPKeyTable {
		return 0xFFFF // above it is the port of a switch
	}
	return 0xFFFFFFFF
}

func join(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += " "
		}
		out += n
	}
	return out
}
