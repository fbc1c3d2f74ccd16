package watch

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Party is an end of a packet, or who reports something. What is not known is
// nil.
type Party struct {
	// Name is the port's that has the LID, or, without one, the GID.
	Name *string      `json:"name"`
	LID  *ib.LID      `json:"lid"`
	GUID *ib.PortGUID `json:"port_guid"`
	// Behind is the switch port that the port is cabled to: it is what no host can
	// choose.
	Behind *string `json:"behind"`
	// GID is from the packet, GIDName the port's that has it.
	GID     *string `json:"gid"`
	GIDName *string `json:"gid_name"`
	QP      *ib.QPN `json:"qp"`
}

// Report is what a trap says, with names. It is the word of the device that sent
// it, At: who sent a packet is what the packet said, unless it came by a directed
// route. A wrong M_Key is not in it: it may be the right one of another port.
type Report struct {
	Trap smp.TrapNumber `json:"trap"`
	At   Party          `json:"at"`
	// By sent the packet that was refused, Against is whom it was for.
	By      *Party `json:"by"`
	Against *Party `json:"against"`
	// Place is the switch or port where it happened, and Link the port at the other
	// end of its cable, where the trap names a port.
	Place *string     `json:"place"`
	Port  *ib.PortNum `json:"port"`
	Link  *string     `json:"link"`
	PKey  *ib.PKey    `json:"pkey"`
	QKey  *string     `json:"qkey"`
	SL    *ib.SL      `json:"sl"`
	// Of trap 256: what was tried.
	Method    *string `json:"method"`
	Attribute *string `json:"attribute"`
	Modifier  *string `json:"modifier"`
	// DrSLID and Route are those of a directed route: Route has the ports by which
	// it came in, the first hop first, and may be cut off.
	DrSLID         *ib.LID `json:"dr_slid"`
	Route          []int   `json:"route"`
	RouteTruncated *bool   `json:"route_truncated"`
	// GID of traps 64 to 67, and the port that has it.
	GID     *string `json:"gid"`
	GIDName *string `json:"gid_name"`
	// Of traps 144 and 145.
	CapabilityMask  *string  `json:"capability_mask"`
	CapabilityMask2 *string  `json:"capability_mask2"`
	Changes         []string `json:"changes"`
	SystemImageGUID *string  `json:"system_image_guid"`
	// Of every notice.
	IssuerLID ib.LID         `json:"issuer_lid"`
	Type      smp.NoticeType `json:"type"`
	Producer  uint32         `json:"producer"`
	Toggle    bool           `json:"notice_toggle"`
	Count     uint16         `json:"notice_count"`

	said string
}

// String says it in one sentence.
func (r *Report) String() string {
	if r.said != "" {
		return fmt.Sprintf("%s (trap %d)", r.said, r.Trap)
	}
	return fmt.Sprintf("%s sent trap %d", r.At.String(), r.Trap)
}

func ref[T any](v T) *T { return &v }

func hex(digits int, v uint64) *string { return ref(fmt.Sprintf("0x%0*x", digits, v)) }

// nameOf is the name of a port; port 0 of a switch is the switch itself.
func nameOf(p *observed.Port) string {
	if p.Node.Switch != nil && p.Num == 0 {
		return p.Node.Name()
	}
	return p.String()
}

// party describes a port.
func party(p *observed.Port, lid ib.LID) Party {
	out := Party{}
	if lid != 0 {
		out.LID = &lid
	}
	if p == nil {
		return out
	}
	out.Name = ref(nameOf(p))
	if out.LID == nil && p.InfoRead && p.Info.LID != 0 {
		out.LID = ref(p.Info.LID)
	}
	if g := p.Agent().GUID; g != 0 {
		out.GUID = &g
	}
	if p.Peer != nil {
		out.Behind = ref(p.Peer.String())
	}
	return out
}

// packet describes an end of a packet by what stands in its headers.
func (d *Directory) packet(lid ib.LID, gid ib.GID, qp *ib.QPN) *Party {
	var out Party
	if lid.IsUnicast() {
		out = party(d.Holder(lid), lid)
	} else if lid != 0 {
		out.LID = &lid
	}
	out.QP = qp
	if gid == (ib.GID{}) {
		return &out
	}
	out.GID = ref(gid.String())
	if p := d.byGID(gid); p != nil {
		out.GIDName = ref(nameOf(p))
		if out.Name == nil && out.LID == nil {
			out.Name, out.GUID = out.GIDName, ref(p.GUID)
		}
	}
	return &out
}

// String has the name first and addresses after it.
func (p *Party) String() string {
	name := "an unknown port"
	switch {
	case p.Name != nil:
		name = *p.Name
	case p.LID != nil && p.LID.IsMulticast():
		name = "a multicast group"
	}
	var marks []string
	if p.LID != nil {
		marks = append(marks, fmt.Sprintf("LID %d", *p.LID))
	}
	if p.GUID != nil {
		marks = append(marks, "port GUID "+p.GUID.String())
	}
	if p.GID != nil {
		mark := "GID " + *p.GID
		switch {
		case p.GIDName == nil:
			mark += ", which no port has"
		case p.Name == nil || *p.GIDName != *p.Name:
			mark += " of " + *p.GIDName
		}
		marks = append(marks, mark)
	}
	if p.QP != nil {
		marks = append(marks, fmt.Sprintf("QP 0x%06x", uint32(*p.QP)))
	}
	if p.Behind != nil {
		marks = append(marks, "behind "+*p.Behind)
	}
	for i, m := range marks {
		switch i {
		case 0:
			name += " (" + m
		default:
			name += ", " + m
		}
	}
	if len(marks) > 0 {
		name += ")"
	}
	return name
}

// Explain says what a trap says that came from a port.
func Explain(from *observed.Port, n *smp.Notice, d *Directory) *Report {
	r := &Report{
		Trap: n.TrapNumber, At: party(from, 0), IssuerLID: n.IssuerLID, Route: []int{}, Changes: []string{},
		Type: n.Type, Producer: n.Producer, Toggle: n.NoticeToggle, Count: n.NoticeCount,
	}
	details, ok := n.TypedDetails()
	if !ok {
		return r
	}
	switch x := details.(type) {
	case *smp.BadMKeyDetails:
		r.badMKey(from, x, d)
	case *smp.BadKeyDetails:
		r.badKey(from, x, d)
	case *smp.SwitchBadPKeyDetails:
		r.switchBadPKey(from, x, d)
	case *smp.LinkStateDetails:
		r.place(d.Holder(x.LID), from, 0)
		r.said = fmt.Sprintf("%s: the link of some port came up or went down%s", r.whose(x.LID), r.says(d.Holder(x.LID) == from))
	case *smp.PortDetails:
		r.port(from, x, d)
	case *smp.LocalChangeDetails:
		r.localChange(from, x, d)
	case *smp.SystemImageGUIDDetails:
		r.SystemImageGUID = hex(16, x.SystemImageGUID)
		r.place(d.Holder(x.LID), from, 0)
		r.said = fmt.Sprintf("%s: SystemImageGUID is %s now%s", r.whose(x.LID), *r.SystemImageGUID, r.says(d.Holder(x.LID) == from))
	case *smp.GIDDetails:
		r.gid(x, d)
	}
	return r
}

// says names who reports something that is not about itself.
func (r *Report) says(own bool) string {
	if own {
		return ""
	}
	return ", says " + r.At.String()
}

// place notes where something happened.
func (r *Report) place(p, from *observed.Port, num ib.PortNum) {
	if p == nil {
		return
	}
	if p.Node.Switch != nil && num != 0 {
		if q := p.Node.Port(num); q != nil {
			p = q
		}
	}
	r.Place = ref(nameOf(p))
	if p.Peer != nil && (num != 0 || p.Node.Switch == nil) {
		r.Link = ref(p.Peer.String())
	}
}

// whose names the place with its LID.
func (r *Report) whose(lid ib.LID) string {
	name := "a port that is not known"
	if r.Place != nil {
		name = *r.Place
	}
	if r.Link != nil {
		return fmt.Sprintf("%s (LID %d, cabled to %s)", name, lid, *r.Link)
	}
	return fmt.Sprintf("%s (LID %d)", name, lid)
}

func (r *Report) badMKey(from *observed.Port, x *smp.BadMKeyDetails, d *Directory) {
	r.Method, r.Attribute, r.Modifier = ref(x.Method.String()), ref(smp.AttributeName(x.AttributeID)), hex(8, uint64(x.AttributeModifier))
	origin := d.Origin(from, x)
	by := party(origin, 0)
	way := ""
	if x.DRNotice {
		r.DrSLID, r.RouteTruncated = &x.DrSLID, &x.DRPathTruncated
		for i := 1; i <= int(x.DRHopCount) && i < len(x.DRNoticeReturnPath); i++ {
			r.Route = append(r.Route, int(x.DRNoticeReturnPath[i]))
		}
		if origin == nil {
			way = fmt.Sprintf(" by a directed route of %d hops that leads back to no port", x.DRHopCount)
		}
	} else {
		by = party(origin, x.LID)
	}
	r.By, r.Against = &by, ref(party(from, 0))
	r.said = fmt.Sprintf("%s tried %s(%s, modifier %s) at %s with a wrong M_Key%s",
		by.String(), *r.Method, *r.Attribute, *r.Modifier, r.At.String(), way)
}

func (r *Report) badKey(from *observed.Port, x *smp.BadKeyDetails, d *Directory) {
	r.By, r.Against, r.SL = d.packet(x.LID1, x.GID1, &x.QP1), d.packet(x.LID2, x.GID2, &x.QP2), &x.SL
	key := ""
	if r.Trap == smp.TrapBadQKey {
		r.QKey = ref(ib.QKey(x.Key).String())
		key = "Q_Key " + *r.QKey
	} else {
		r.PKey = ref(ib.PKey(x.Key))
		key = "P_Key " + r.PKey.String()
	}
	r.Place = r.At.Name
	r.said = fmt.Sprintf("%s sent %s to %s: refused%s", r.By, key, r.Against, r.says(d.Holder(x.LID2) == from))
}

// SwitchBadPKeyDetails.DataValid, by bits.
const (
	validLID1 = 1 << iota
	validLID2
	validPKey
	validSL
	validQP1
	validQP2
	validGID1
	validGID2
)

func (r *Report) switchBadPKey(from *observed.Port, x *smp.SwitchBadPKeyDetails, d *Directory) {
	side := func(lid ib.LID, gid ib.GID, qp ib.QPN, lidBit, gidBit, qpBit uint16) *Party {
		var of *ib.QPN
		if x.DataValid&lidBit == 0 {
			lid = 0
		}
		if x.DataValid&gidBit == 0 {
			gid = ib.GID{}
		}
		if x.DataValid&qpBit != 0 {
			of = &qp
		}
		return d.packet(lid, gid, of)
	}
	r.By = side(x.LID1, x.GID1, x.QP1, validLID1, validGID1, validQP1)
	r.Against = side(x.LID2, x.GID2, x.QP2, validLID2, validGID2, validQP2)
	key := "a P_Key"
	if x.DataValid&validPKey != 0 {
		r.PKey = &x.PKey
		key = "P_Key " + x.PKey.String()
	}
	if x.DataValid&validSL != 0 {
		r.SL = &x.SL
	}
	r.Port = &x.Port
	holder := d.Holder(x.SwitchLID)
	r.place(holder, from, x.Port)
	r.said = fmt.Sprintf("%s sent %s to %s: refused at %s%s", r.By, key, r.Against, r.whose(x.SwitchLID), r.says(holder == from))
}

// portTroubles are traps 129 to 131 in words.
var portTroubles = map[smp.TrapNumber]string{
	smp.TrapLinkIntegrity:       "more errors of the link than its threshold lets pass",
	smp.TrapBufferOverrun:       "its buffers overran for longer than its threshold lets pass",
	smp.TrapFlowControlWatchdog: "no flow-control packet came in time",
}

func (r *Report) port(from *observed.Port, x *smp.PortDetails, d *Directory) {
	r.Port = &x.Port
	holder := d.Holder(x.LID)
	r.place(holder, from, x.Port)
	r.said = fmt.Sprintf("%s: %s%s", r.whose(x.LID), portTroubles[r.Trap], r.says(holder == from))
}

func (r *Report) localChange(from *observed.Port, x *smp.LocalChangeDetails, d *Directory) {
	for _, c := range []struct {
		name string
		is   bool
	}{
		{"CapabilityMask2", x.CapabilityMask2Change}, {"HierarchyInfo", x.HierarchyInfoChange}, {"SMPriority", x.SMPriorityChange},
		{"LinkSpeedEnabled", x.LinkSpeedEnabledChange}, {"LinkWidthEnabled", x.LinkWidthEnabledChange}, {"NodeDescription", x.NodeDescriptionChange},
	} {
		if x.OtherLocalChanges && c.is {
			r.Changes = append(r.Changes, c.name)
		}
	}
	r.CapabilityMask, r.CapabilityMask2 = hex(8, uint64(x.CapabilityMask)), hex(4, uint64(x.CapabilityMask2))
	r.place(d.Holder(x.LID), from, 0)
	what := slices.Clone(r.Changes)
	if len(what) == 0 || slices.Contains(what, "CapabilityMask2") {
		what = append(what, fmt.Sprintf("capabilities are %s and %s", *r.CapabilityMask, *r.CapabilityMask2))
	}
	r.said = r.whose(x.LID) + " has changed: "
	for i, w := range what {
		if i > 0 {
			r.said += ", "
		}
		r.said += w
	}
	r.said += r.says(d.Holder(x.LID) == from)
}

func (r *Report) gid(x *smp.GIDDetails, d *Directory) {
	r.GID = ref(x.GID.String())
	name := ""
	if p := d.byGID(x.GID); p != nil {
		r.GIDName = ref(nameOf(p))
		name = " of " + *r.GIDName
	}
	what := map[smp.TrapNumber]string{
		smp.TrapGIDInService: "is in service", smp.TrapGIDOutOfService: "is out of service",
		smp.TrapMulticastGroupCreated: "is a new multicast group", smp.TrapMulticastGroupDeleted: "is no longer a multicast group",
	}[r.Trap]
	r.said = fmt.Sprintf("GID %s%s %s%s", *r.GID, name, what, r.says(false))
}
