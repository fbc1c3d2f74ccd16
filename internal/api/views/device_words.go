package views

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// listedMost is how many ports a sentence names.
const listedMost = 8

// deviceWords says how a device is.
func (v *DeviceView) deviceWords(d *Device) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	say("%s", v.kind())
	if v.Node.Contested {
		say("Another device claims the same GUID: which of the two is genuine cannot be told.")
	}
	switch {
	case d.Owner == "":
	case strings.Contains(d.Owner, ", "):
		say("Its end ports belong to %s.", d.Owner)
	case d.Owner == resource.Provider:
		say("It belongs to the provider.")
	default:
		say("It belongs to %s.", d.Owner)
	}
	switch d.State {
	case "drained":
		if n := v.routesOver(); n > 0 {
			say("It is drained: %d entries of the forwarding tables of other switches still lead over it to somewhere else.", n)
		} else {
			say("It is drained, and nothing leads over it to somewhere else: it may be taken out of service.")
		}
	case "fenced":
		say("It is kept out of the subnet: what it is cabled to is fenced.")
	case "inactive":
		say("No link of it is Active.")
	case "down":
		say("No link of it is up.")
	}
	if list := v.unread(); len(list) > 0 {
		say("Not read: %s. What is shown of it may be old.", some(list))
	}
	switch d.Verdict {
	case "violated":
		say("It can talk to devices that the policy keeps it apart from, or they to it.")
	case "unenforced":
		say("Only tables of hosts keep it apart from others, or others from it: no switch does.")
	case "unknown":
		say("Whether it is kept apart from others is not known.")
	}
	if v.whole {
		out = append(out, v.troubles(d)...)
		for _, x := range v.differences(0) {
			say("By the list of cables: %s.", x)
		}
	}
	return out
}

// kind says what a device is, and what is cabled to it.
func (v *DeviceView) kind() string {
	if v.Node.Switch == nil {
		if v.Node.Type() == ib.NodeCA {
			return fmt.Sprintf("A host's adapter (CA) with %s.", count(int(v.Node.Info.NumPorts), "port", "ports"))
		}
		return fmt.Sprintf("A %s with %s.", v.Node.Type(), count(int(v.Node.Info.NumPorts), "port", "ports"))
	}
	hosts, switches, unknown, free := 0, 0, 0, 0
	for i := 1; i < len(v.Node.Ports); i++ {
		switch p := &v.Node.Ports[i]; {
		case p.FacesEnd():
			hosts++
		case p.Peer != nil:
			switches++
		case p.FacesStranger(), p.Reached && !p.InfoRead:
			unknown++
		default:
			free++
		}
	}
	text := fmt.Sprintf("A switch of %s: %d to hosts, %d to switches, %d without a link", count(int(v.Node.Info.NumPorts), "port", "ports"), hosts, switches, free)
	if unknown > 0 {
		text += fmt.Sprintf(", %d of which nobody knows where it leads", unknown)
	}
	if v.Level > 0 {
		text += fmt.Sprintf("; level %d, in %s", v.Level, v.Group)
	}
	return text + "."
}

// unread lists what was not read of the ports that the caller sees.
func (v *DeviceView) unread() (out []string) {
	if s := v.Node.Switch; s != nil {
		if !s.InfoRead {
			out = append(out, "SwitchInfo")
		}
		if slices.Contains(s.LFTRead, false) {
			out = append(out, "the forwarding table")
		}
	}
	for _, p := range v.ports() {
		if v.sees(p) {
			for _, what := range lacks(p) {
				out = append(out, fmt.Sprintf("%s of port %d", what, p.Num))
			}
		}
	}
	return out
}

// lacks lists what every sweep reads of a port and was not read.
func lacks(p *observed.Port) (out []string) {
	if !p.Reached {
		return nil
	}
	if !p.InfoRead {
		out = append(out, "PortInfo")
	}
	if (p.IsEnd() || p.FacesEnd()) && !p.PKeysKnown() {
		out = append(out, "P_KeyTable")
	}
	return out
}

// troubles lists the ports with which something is wrong.
func (v *DeviceView) troubles(d *Device) []string {
	var list []string
	for _, p := range d.Ports {
		if p.Problem != "" {
			list = append(list, fmt.Sprintf("port %d (%s)", p.Number, p.Problem))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{"To be looked at: " + some(list) + "."}
}

// some names the first of a list, and how many more there are.
func some(list []string) string {
	if len(list) <= listedMost {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:listedMost], ", "), len(list)-listedMost)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// problem says in a few words what is wrong with a port; the worst, where there is more.
func (v *DeviceView) problem(p *observed.Port) string {
	diag := p.Info.DiagCode
	switch {
	case p.Reached && !p.InfoRead:
		return "PortInfo was not read"
	case v.Facts.Fence(p.Place()) != "":
		return "fenced"
	case p.Peer != nil && v.Facts.Fence(p.Peer.Place()) != "":
		return "kept out by the switch port that it is cabled to"
	case !p.Reached:
		return ""
	case p.Stranger != nil:
		return "what is behind it was not let into the subnet"
	case p.FacesStranger() || p.Silent:
		return "nobody answers behind it"
	case p.IsEnd() && diag != 0 && !diag.IsReady():
		return "says of itself: " + orElse(diag.Meaning(), fmt.Sprintf("DiagCode 0x%04x", uint16(diag)))
	case p.IsUp() && p.Num != 0 && !isPassing(p):
		return "up, and " + p.Info.PortState.String() + " instead of Active"
	case len(lacks(p)) > 0:
		return "P_KeyTable was not read"
	}
	if text := slow(p); text != "" && v.seesLink(p) {
		return text
	}
	if p.FacesEnd() && !p.Enforces() {
		return "does not check P_Keys"
	}
	if v.whole {
		return strings.Join(v.differences(int(p.Num)), "; ")
	}
	return ""
}

// seesLink reports whether the caller may know what the other end of a link can do.
func (v *DeviceView) seesLink(p *observed.Port) bool { return v.peerOf(p) != nil }

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// differences are those from the list of cables at a port, or at the device for 0.
func (v *DeviceView) differences(port int) (out []string) {
	for _, d := range v.Differences {
		if d.Node == v.Node.GUID().String() && d.Port == port {
			out = append(out, d.Text)
		}
	}
	return out
}

// portWords says how a port is.
func (v *DeviceView) portWords(p *observed.Port) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	say("%s", v.linkWords(p))
	out = append(out, v.behind(p)...)
	if p.IsUp() && p.Num != 0 {
		say("The link is %v wide at %s a lane, with an MTU of %v bytes.", p.Info.LinkWidthActive, p.Info.Speed().Gbps(), p.Info.NeighborMTU)
		if text := slow(p); text != "" && v.seesLink(p) {
			say("It could do better: it is %s.", text)
		}
	}
	if reason := v.Facts.Fence(p.Place()); reason != "" {
		say("It is fenced: %s. Nothing passes.", reason)
	}
	if p.Peer != nil && v.Facts.Fence(p.Peer.Place()) != "" {
		say("The switch port that it is cabled to is fenced: nothing passes.")
	}
	if p.IsEnd() && p.InfoRead {
		out = append(out, v.endWords(p)...)
	}
	if p.Node.Switch != nil && p.Num != 0 && p.InfoRead {
		out = append(out, enforcement(p))
	}
	out = append(out, v.keyWords(p)...)
	if p.InfoRead && p.Info.PKeyViolations > 0 {
		say("It has refused %d packets with a P_Key that it does not hold.", p.Info.PKeyViolations)
	}
	if v.whole {
		for _, x := range v.differences(int(p.Num)) {
			say("By the list of cables: %s.", x)
		}
	}
	return out
}

// linkWords says how the link of a port is.
func (v *DeviceView) linkWords(p *observed.Port) string {
	switch {
	case !p.Reached && !p.InfoRead:
		return "It was not reached: its link leads to another subnet, or is down."
	case !p.InfoRead:
		return "Its PortInfo was not read: how its link is, is not known."
	case p.Num == 0:
		return "This is the port through which the switch itself is managed."
	case isPassing(p):
		return "Its link is Active: packets pass."
	case p.IsUp():
		return fmt.Sprintf("Its link is up, and %v: only packets of subnet management pass.", p.Info.PortState)
	}
	return fmt.Sprintf("Its link is down (%v): nothing passes.", p.Info.PortPhysicalState)
}

// behind says what is at the other end of a port.
func (v *DeviceView) behind(p *observed.Port) []string {
	peer := v.peerOf(p)
	switch {
	case peer != nil && peer.Name == peer.Node:
		return []string{fmt.Sprintf("It is cabled to port %d of %s.", peer.Port, peer.Node)}
	case peer != nil:
		return []string{fmt.Sprintf("It is cabled to port %d of %s (%s).", peer.Port, peer.Name, peer.Node)}
	case p.Peer != nil:
		return []string{"It is cabled to a device that is not yours."}
	case v.whole && p.Stranger != nil:
		return []string{fmt.Sprintf("What is behind it was not let into the subnet: %v.", p.Stranger.Why)}
	case p.Reached && (p.FacesStranger() || p.Silent):
		return []string{"Something is behind it that does not answer."}
	}
	return nil
}

// endWords says what an end port is.
func (v *DeviceView) endWords(p *observed.Port) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	lids := fmt.Sprintf("LID %d", p.Info.LID)
	if n := int(p.Info.LMC.Count()); n > 1 {
		lids = fmt.Sprintf("LIDs %d to %d", p.Info.LID, int(p.Info.LID)+n-1)
	}
	say("Its port GUID is %v; it has %s.", p.GUID, lids)
	switch {
	case !v.whole:
	case p.Info.MKey != 0:
		say("Its agent is guarded by an M_Key, with protect bits %d.", p.Info.MKeyProtectBits)
	default:
		say("No M_Key guards its agent: whoever reaches it may change its tables.")
	}
	if d := p.Diagnosis(); d.Code != 0 && !d.Code.IsReady() {
		say("It says of itself: %s (DiagCode 0x%04x, %s of diagnostic data).", orElse(d.Code.Meaning(), "a code without a meaning"), uint16(d.Code), count(len(d.Blocks), "block", "blocks"))
	}
	if p.Info.CapabilityMask.Has(smp.CapIsSM) {
		say("It says that a subnet manager runs behind it.")
	}
	return out
}

// enforcement says whether a switch port checks P_Keys.
func enforcement(p *observed.Port) string {
	switch {
	case p.Enforces():
		return "It checks the P_Keys of packets in both directions."
	case !p.Node.Switch.InfoRead:
		return "Whether it can check P_Keys is not known: SwitchInfo was not read."
	case p.Node.Switch.Info.PartitionEnforcementCap == 0:
		return "It cannot check P_Keys: the switch has no room for a table."
	case p.FacesEnd():
		return "It does not check the P_Keys of packets in both directions: a host that changes its own table may get through."
	}
	return "It does not check P_Keys: it leads to another switch, or nowhere."
}

// keyWords says which keys a port holds.
func (v *DeviceView) keyWords(p *observed.Port) []string {
	if !p.Reached || p.Node.Switch != nil && !p.Node.Switch.InfoRead {
		return nil
	}
	if !p.PKeysKnown() {
		if p.IsEnd() || p.FacesEnd() {
			return []string{"Not all of its P_Key table was read: it may hold more keys than are shown."}
		}
		return nil
	}
	var list []string
	for _, k := range v.keys(p) {
		name := orElse(k.Partition, k.PKey)
		if k.Full {
			list = append(list, "full member of "+name)
		} else {
			list = append(list, "limited member of "+name)
		}
	}
	if len(list) == 0 {
		return []string{"It holds no key: it is a member of nothing."}
	}
	return []string{fmt.Sprintf("It holds %s of %d: %s.", count(len(list), "key", "keys"), p.PKeyCap(), some(list))}
}
