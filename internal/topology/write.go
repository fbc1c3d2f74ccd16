package topology

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// form is how a type of node is written.
type form struct {
	keyword string // of a record
	setting string // of its GUID
	letter  byte   // of its id
}

// formOf returns the form of a type; a type that does not exist has marks in it
// that no reader takes.
func formOf(t ib.NodeType) form {
	switch t {
	case ib.NodeCA:
		return form{"Ca", "caguid", 'H'}
	case ib.NodeSwitch:
		return form{"Switch", "switchguid", 'S'}
	case ib.NodeRouter:
		return form{"Rt", "rtguid", 'R'}
	}
	return form{"???", "???", '?'}
}

// DiscoveredID is the id that ibnetdiscover gives to a node: a letter for its
// type, and its GUID.
func DiscoveredID(t ib.NodeType, guid ib.NodeGUID) string {
	return fmt.Sprintf("%c-%016x", formOf(t).letter, uint64(guid))
}

// WriteIbsim writes l in ibsim's format, from which ibsim and Read make the same
// fabric again, with these limits of the format. ibsim does not take port GUIDs
// other than NodeGUID + port number, Read does. Presets of a port without a
// cable are left out, # in a node id becomes ".", and a description changes
// as PlainText says. It fails if l is not valid.
func (l *Netlist) WriteIbsim(w io.Writer) error {
	ids, err := l.plainIDs()
	if err != nil {
		return fmt.Errorf("write a netfile: %w", err)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# %d CAs, %d switches, %d routers, %d links\n",
		l.Count(ib.NodeCA), l.Count(ib.NodeSwitch), l.Count(ib.NodeRouter), len(l.Links()))
	guids := newGUIDSequence()
	var device uint16
	for _, n := range l.Nodes {
		fmt.Fprintln(out)
		writeSettings(out, n, &guids, device)
		device = n.DeviceID
		fmt.Fprintf(out, "%s %d \"%s\"%s\n", formOf(n.Type).keyword, n.NumPorts(), ids[n], headerComment(n, ids[n]))
		for p := range n.Ports {
			if peer := n.Ports[p].Peer; peer != nil {
				writePort(out, n, p, ids[peer])
			}
		}
	}
	for _, command := range l.Commands {
		fmt.Fprintf(out, "\ndo %s\n", command)
	}
	return out.Flush()
}

// plainIDs validates l and returns the ids of its nodes without #, which stands
// in a file between module and id only.
func (l *Netlist) plainIDs() (map[*Node]string, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	ids := make(map[*Node]string, len(l.Nodes))
	owners := make(map[string]*Node, len(l.Nodes))
	for _, n := range l.Nodes {
		id := strings.ReplaceAll(n.ID, "#", ".")
		if o := owners[id]; o != nil {
			return nil, fmt.Errorf("nodes %q and %q: without # both are %q", o.ID, n.ID, id)
		}
		ids[n], owners[id] = id, n
	}
	return ids, nil
}

// writeSettings writes the lines before a record, those that ibsim needs.
func writeSettings(out io.Writer, n *Node, guids *guidSequence, device uint16) {
	if n.VendorID != 0 {
		fmt.Fprintf(out, "vendid=0x%x\n", n.VendorID)
	}
	if n.DeviceID != device { // it stays for the nodes that follow
		fmt.Fprintf(out, "devid=0x%x\n", n.DeviceID)
	}
	if n.SystemImageGUID != uint64(n.GUID) && n.SystemImageGUID != 0 {
		fmt.Fprintf(out, "sysimgguid=0x%x\n", n.SystemImageGUID)
	}
	hasOwnPortGUID := n.Type == ib.NodeSwitch && n.Ports[0].GUID != n.defaultPortGUID(0)
	if hasOwnPortGUID || guids.next[n.Type] != uint64(n.GUID) {
		guids.set(n.Type, uint64(n.GUID))
		fmt.Fprintf(out, "%s=0x%x", formOf(n.Type).setting, uint64(n.GUID))
		if hasOwnPortGUID {
			fmt.Fprintf(out, "(%x)", uint64(n.Ports[0].GUID))
		}
		fmt.Fprintln(out)
	}
	guids.take(n.Type, ib.PortNum(n.NumPorts()))
}

// headerComment is what follows the id in a record's header: a description
// other than the id, and a switch's attributes.
func headerComment(n *Node, id string) string {
	attributes := ""
	if n.Type == ib.NodeSwitch {
		if n.EnhancedPort0 {
			attributes += " enhanced port 0"
		}
		attributes += preset(&n.Ports[0])
	}
	description := PlainText(n.description())
	if attributes == "" && description == id {
		return ""
	}
	return ` # "` + description + `"` + attributes
}

// preset is the LID and LMC of a port as attributes of a line.
func preset(p *Port) string {
	if p.LID == 0 && p.LMC == 0 {
		return ""
	}
	return fmt.Sprintf(" lid %d lmc %d", p.LID, p.LMC)
}

// writePort writes the line of port p, cabled to a node whose id is peer.
func writePort(out io.Writer, n *Node, p int, peer string) {
	port := &n.Ports[p]
	fmt.Fprintf(out, "[%d]", p)
	if n.IsEndPort(p) && port.GUID != n.defaultPortGUID(p) {
		fmt.Fprintf(out, "(%x)", uint64(port.GUID))
	}
	fmt.Fprintf(out, "\t\"%s\"[%d]", peer, port.PeerPort)
	enabled := port.Enabled
	if enabled.Width != DefaultRates.Width {
		fmt.Fprintf(out, " w=%d", enabled.Width)
	}
	if enabled.Speed != DefaultRates.Speed {
		fmt.Fprintf(out, " s=%d", enabled.Speed)
	}
	if enabled.ExtSpeed != DefaultRates.ExtSpeed {
		fmt.Fprintf(out, " e=%d", enabled.ExtSpeed)
	}
	if lid := preset(port); lid != "" {
		fmt.Fprintf(out, " #%s", lid)
	}
	fmt.Fprintln(out)
}

// WriteIbnetdiscover writes l as ibnetdiscover prints a fabric, entered at the
// first node: switches, then CAs, then routers, each named by DiscoveredID, with
// its cabled ports and their active rates. It fails if l is not valid.
func (l *Netlist) WriteIbnetdiscover(w io.Writer) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("write a topology: %w", err)
	}
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "#\n# Topology file: generated by ibwarden\n#\n")
	if n, p, err := l.Attach(""); err == nil {
		fmt.Fprintf(out, "# Initiated from node %016x port %016x\n", uint64(n.GUID), uint64(n.Ports[p].GUID))
	}
	for _, t := range []ib.NodeType{ib.NodeSwitch, ib.NodeCA, ib.NodeRouter} {
		for _, n := range l.Nodes {
			if n.Type == t {
				writeDiscovered(out, n)
			}
		}
	}
	return out.Flush()
}

// writeDiscovered writes a node as ibnetdiscover does.
func writeDiscovered(out io.Writer, n *Node) {
	form := formOf(n.Type)
	fmt.Fprintf(out, "\nvendid=0x%x\ndevid=0x%x\n", n.VendorID, n.DeviceID)
	if n.SystemImageGUID != 0 {
		fmt.Fprintf(out, "sysimgguid=0x%x\n", n.SystemImageGUID)
	}
	fmt.Fprintf(out, "%s=0x%x", form.setting, uint64(n.GUID))
	if n.Type == ib.NodeSwitch {
		fmt.Fprintf(out, "(%x)", uint64(n.Ports[0].GUID))
	}
	fmt.Fprintf(out, "\n%s\t%d \"%s\"\t\t# \"%s\"", form.keyword, n.NumPorts(), DiscoveredID(n.Type, n.GUID), PlainText(n.description()))
	if n.Type == ib.NodeSwitch {
		port0 := "base"
		if n.EnhancedPort0 {
			port0 = "enhanced"
		}
		fmt.Fprintf(out, " %s port 0 lid %d lmc %d", port0, n.Ports[0].LID, n.Ports[0].LMC)
	}
	fmt.Fprintln(out)
	for p := range n.Ports {
		if n.Ports[p].Peer != nil {
			writeDiscoveredPort(out, n, p)
		}
	}
}

func writeDiscoveredPort(out io.Writer, n *Node, p int) {
	port := &n.Ports[p]
	peer, peerEnd := port.Peer, port.Peer.endPort(int(port.PeerPort))
	isCA := n.Type != ib.NodeSwitch
	fmt.Fprintf(out, "[%d]", p)
	if isCA {
		fmt.Fprintf(out, "(%x) ", uint64(port.GUID))
	}
	fmt.Fprintf(out, "\t\"%s\"[%d]", DiscoveredID(peer.Type, peer.GUID), port.PeerPort)
	if peer.Type != ib.NodeSwitch {
		if isCA {
			fmt.Fprint(out, " ")
		}
		fmt.Fprintf(out, "(%x) ", uint64(peerEnd.GUID))
	}
	fmt.Fprint(out, "\t\t# ")
	if isCA {
		fmt.Fprintf(out, "lid %d lmc %d ", port.LID, port.LMC)
	}
	rate, _ := n.ActiveRate(ib.PortNum(p))
	fmt.Fprintf(out, "\"%s\" lid %d %v\n", PlainText(peer.description()), peerEnd.LID, rate)
}

// PlainText is a description as quotes in a file can hold it: control
// characters become blanks, double quotes single ones, and what is beyond
// MaxDescription bytes is cut.
func PlainText(s string) string {
	plain := []byte(s[:min(len(s), MaxDescription)])
	for i, c := range plain {
		switch {
		case isControl(rune(c)):
			plain[i] = ' '
		case c == '"':
			plain[i] = '\''
		}
	}
	return string(plain)
}
