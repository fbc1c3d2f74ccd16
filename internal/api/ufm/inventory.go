package ufm

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Limits of the inventory.
const (
	// viewLife is how old what is shown of the fabric may be besides the age of the
	// snapshot: it bounds the work for clients that poll.
	viewLife = time.Second
	// viewTimeout bounds the wait for a snapshot.
	viewTimeout = 5 * time.Second
	// pageSize is the number of links of a page for which none is given.
	pageSize = 20
)

// defaultPrefix is the subnet prefix where none was read.
const defaultPrefix = 0xfe80_0000_0000_0000

// view is what calls need of a snapshot.
type view struct {
	at     time.Time
	fabric *observed.Fabric
	prefix uint64
	// guarded reports whether every end port has an M_Key, perPort that no two have the same.
	guarded, perPort bool
	// holders are the ports of CAs and routers that hold a key, by its number.
	holders map[ib.PKeyBase][]holder
}

// holder is a port with a key in its table.
type holder struct {
	port         ib.PortGUID
	full, index0 bool
}

// view is the fabric as it was last read.
func (c *call) view() (*view, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.service.Now()
	if age := now.Sub(timeOf(c.fabric)); c.fabric != nil && age >= 0 && age < viewLife {
		return c.fabric, nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, viewTimeout)
	defer cancel()
	s, err := c.inventory.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("the fabric has not been read: %w", err)
	}
	c.fabric = newView(s.Fabric, now)
	return c.fabric, nil
}

func timeOf(v *view) (t time.Time) {
	if v != nil {
		t = v.at
	}
	return t
}

func newView(f *observed.Fabric, now time.Time) *view {
	v := &view{at: now, fabric: f, prefix: defaultPrefix, guarded: true, holders: map[ib.PKeyBase][]holder{}}
	if f.Self != nil && f.Self.InfoRead && f.Self.Info.GIDPrefix != 0 {
		v.prefix = f.Self.Info.GIDPrefix
	}
	keys := map[ib.MKey]bool{}
	ends := f.EndPorts()
	for _, p := range ends {
		if !p.InfoRead || p.Info.MKey == 0 {
			v.guarded = false
		}
		keys[p.Info.MKey] = true
		if p.Node.Switch == nil {
			v.hold(p)
		}
	}
	v.guarded = v.guarded && len(ends) > 0
	v.perPort = v.guarded && len(keys) == len(ends)
	return v
}

// hold enters the keys of a port.
func (v *view) hold(p *observed.Port) {
	for i, k := range p.ReadPKeys() {
		base := k.Base()
		if base == 0 {
			continue
		}
		list := v.holders[base]
		if n := len(list); n > 0 && list[n-1].port == p.GUID { // the other key of the two
			list[n-1].full = list[n-1].full || k.IsFull()
			list[n-1].index0 = list[n-1].index0 || i == 0
			continue
		}
		v.holders[base] = append(list, holder{p.GUID, k.IsFull(), i == 0})
	}
}

// port is a port as UFM shows it. What is at the other end of its cable is shown to the
// provider alone.
type port struct {
	GUID          string  `json:"guid"`
	Name          string  `json:"name"`
	SystemID      string  `json:"systemID"`
	SystemGUID    string  `json:"system_guid"`
	SystemName    string  `json:"system_name"`
	LID           ib.LID  `json:"lid"`
	Number        int     `json:"number"`
	PhysicalPort  int     `json:"physical_port_number"`
	DName         string  `json:"dname"`
	Label         string  `json:"label"`
	Description   string  `json:"node_description"`
	PhysicalState string  `json:"physical_state"`
	LogicalState  string  `json:"logical_state"`
	PeerNodeName  *string `json:"peer_node_name,omitempty"`
	PeerDName     *string `json:"peer_port_dname,omitempty"`
	PeerGUID      *string `json:"peer_guid,omitempty"`
}

// portName is the name of a port: the GUID that it is known by, and its number.
func portName(p *observed.Port) string {
	return guidText(portGUID(p)) + "_" + strconv.Itoa(int(p.Num))
}

// portGUID is the GUID of an end port; that of the switch for its other ports.
func portGUID(p *observed.Port) uint64 {
	if p.Node.Switch != nil {
		return uint64(p.Node.GUID())
	}
	return uint64(p.GUID)
}

// systemName is the host of a CA, or the switch.
func systemName(n *observed.Node) string {
	if n.Switch == nil {
		return names.Short(n.Name())
	}
	return n.Name()
}

func dname(p *observed.Port) string {
	num := strconv.Itoa(int(p.Num))
	if p.Node.Switch != nil {
		return num
	}
	_, device, _ := strings.Cut(p.Node.Description, " ")
	if device == "" {
		device = "HCA"
	}
	return device + "/" + num
}

func physicalState(p *observed.Port) string {
	if !p.InfoRead {
		return "Unknown"
	}
	switch p.Info.PortPhysicalState {
	case smp.PhysLinkUp:
		return "Link Up"
	case smp.PhysDisabled:
		return "Disabled"
	case smp.PhysPolling:
		return "Polling"
	case smp.PhysSleep:
		return "Sleep"
	case smp.PhysTraining:
		return "Port Configuration Training"
	case smp.PhysErrorRecovery:
		return "Link Error Recovery"
	}
	return "Unknown"
}

func logicalState(p *observed.Port) string {
	if !p.InfoRead {
		return "Unknown"
	}
	switch p.Info.PortState {
	case smp.PortDown:
		return "Down"
	case smp.PortInit:
		return "Initialize"
	case smp.PortArmed:
		return "Armed"
	case smp.PortActive:
		return "Active"
	}
	return "Unknown"
}

func (c *call) shownPort(p *observed.Port) port {
	lid := p.Info.LID
	if p.Node.Switch != nil {
		lid = p.Node.Ports[0].Info.LID
	}
	out := port{
		GUID: guidText(portGUID(p)), Name: portName(p), LID: lid, Number: int(p.Num), PhysicalPort: int(p.Num),
		SystemID: guidText(uint64(p.Node.GUID())), SystemGUID: guidText(uint64(p.Node.GUID())), SystemName: systemName(p.Node),
		DName: dname(p), Label: dname(p), Description: p.Node.Name(),
		PhysicalState: physicalState(p), LogicalState: logicalState(p),
	}
	if all(c.by) {
		var name, device, guid string
		if p.Peer != nil {
			name, device, guid = systemName(p.Peer.Node), dname(p.Peer), guidText(portGUID(p.Peer))
		}
		out.PeerNodeName, out.PeerDName, out.PeerGUID = &name, &device, &guid
	}
	return out
}

// ports are those that the caller may see: of a tenant its own end ports, of the
// provider every port that has a cable or an address.
func (c *call) ports(s *resource.State, v *view) (list []*observed.Port) {
	for _, n := range v.fabric.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			switch {
			case i == 0:
			case n.Switch != nil:
				if all(c.by) {
					list = append(list, p)
				}
			case p.Reached && s.SightOf(c.by, p.GUID) == resource.SightWhole:
				list = append(list, p)
			}
		}
	}
	return list
}

// seen are the ports that the caller may see.
func (c *call) seen() (list []*observed.Port, err error) {
	v, err := c.view()
	if err != nil {
		return nil, err
	}
	c.read(func(s *resource.State) { list = c.ports(s, v) })
	return list, nil
}

// types are the words of clients for a type of node.
var types = map[string]func(ib.NodeType) bool{
	"computer": func(t ib.NodeType) bool { return t == ib.NodeCA },
	"host":     func(t ib.NodeType) bool { return t == ib.NodeCA },
	"switch":   func(t ib.NodeType) bool { return t == ib.NodeSwitch },
	"gateway":  func(t ib.NodeType) bool { return t == ib.NodeRouter },
	"router":   func(t ib.NodeType) bool { return t == ib.NodeRouter },
}

// typed fits the nodes of a type in a query; all for "", and none for other words.
func typed(word string) func(*observed.Node) bool {
	fits := types[strings.ToLower(word)]
	return func(n *observed.Node) bool { return word == "" || fits != nil && fits(n.Type()) }
}

// isSystem reports whether a node is the one that a query names by its GUID.
func isSystem(n *observed.Node, text string) bool {
	g, err := parseGUID(text)
	return err == nil && uint64(g) == uint64(n.GUID())
}

// listPorts answers GET resources/ports.
func (c *call) listPorts() (any, error) {
	list, err := c.seen()
	if err != nil {
		return nil, err
	}
	fits, system, active := typed(c.query.Get("sys_type")), c.query.Get("system"), truth(c.query.Get("active"))
	out := []port{}
	for _, p := range list {
		if !fits(p.Node) || system != "" && !isSystem(p.Node, system) || active && logicalState(p) != "Active" {
			continue
		}
		out = append(out, c.shownPort(p))
	}
	return out, nil
}

// getPorts answers GET resources/ports/{}: names with commas between them.
func (c *call) getPorts() (any, error) {
	list, err := c.seen()
	if err != nil {
		return nil, err
	}
	out := []port{}
	for _, want := range splitWords(c.args[0]) {
		guid, num, _ := strings.Cut(want, "_")
		g, err := parseGUID(guid)
		i := slices.IndexFunc(list, func(p *observed.Port) bool {
			return err == nil && uint64(g) == portGUID(p) && num == strconv.Itoa(int(p.Num))
		})
		if i < 0 {
			return nil, wrong(http.StatusNotFound, "port %.40q: there is none, want names as in GET resources/ports", want)
		}
		if out = append(out, c.shownPort(list[i])); len(out) > MaxGUIDs {
			return nil, wrong(http.StatusBadRequest, "want at most %d ports", MaxGUIDs)
		}
	}
	return out, nil
}

// system is a device as UFM shows it.
type system struct {
	GUID        string `json:"guid"`
	SystemGUID  string `json:"system_guid"`
	Name        string `json:"system_name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Ports       any    `json:"ports"` // names, or with ports=true the ports
}

func typeName(t ib.NodeType) string {
	switch t {
	case ib.NodeSwitch:
		return "switch"
	case ib.NodeRouter:
		return "router"
	}
	return "host"
}

// systems are the devices of the ports that the caller may see.
func (c *call) systems() (list []system, nodes []*observed.Node, err error) {
	ports, err := c.seen()
	if err != nil {
		return nil, nil, err
	}
	whole := truth(c.query.Get("ports"))
	for len(ports) > 0 {
		n := ports[0].Node
		end := 1
		for end < len(ports) && ports[end].Node == n {
			end++
		}
		s := system{
			GUID: guidText(uint64(n.GUID())), SystemGUID: guidText(uint64(n.GUID())), Name: systemName(n),
			Type: typeName(n.Type()), Description: n.Name(),
		}
		if whole {
			all := make([]port, end)
			for i, p := range ports[:end] {
				all[i] = c.shownPort(p)
			}
			s.Ports = all
		} else {
			all := make([]string, end)
			for i, p := range ports[:end] {
				all[i] = portName(p)
			}
			s.Ports = all
		}
		list, nodes, ports = append(list, s), append(nodes, n), ports[end:]
	}
	return list, nodes, nil
}

// listSystems answers GET resources/systems.
func (c *call) listSystems() (any, error) {
	list, nodes, err := c.systems()
	if err != nil {
		return nil, err
	}
	fits := typed(c.query.Get("type"))
	out := []system{}
	for i, n := range nodes {
		if fits(n) {
			out = append(out, list[i])
		}
	}
	return out, nil
}

// getSystem answers GET resources/systems/{}.
func (c *call) getSystem() (any, error) {
	list, nodes, err := c.systems()
	if err != nil {
		return nil, err
	}
	for i, n := range nodes {
		if isSystem(n, c.args[0]) {
			return list[i], nil
		}
	}
	return nil, wrong(http.StatusNotFound, "system %.40q: there is none", c.args[0])
}

// link is a cable as UFM shows it.
type link struct {
	Name             string `json:"name"`
	SourceGUID       string `json:"source_guid"`
	SourcePort       string `json:"source_port"`
	SourceName       string `json:"source_port_node_description"`
	DestinationGUID  string `json:"destination_guid"`
	DestinationPort  string `json:"destination_port"`
	DestinationName  string `json:"destination_port_node_description"`
	SourceDName      string `json:"source_port_dname"`
	DestinationDName string `json:"destination_port_dname"`
}

// listLinks answers GET resources/links: those of which the caller may see both ends.
func (c *call) listLinks() (any, error) {
	v, err := c.view()
	if err != nil {
		return nil, err
	}
	list, err := c.seen()
	if err != nil {
		return nil, err
	}
	seen := make(map[*observed.Port]bool, len(list))
	for _, p := range list {
		seen[p] = true
	}
	system := c.query.Get("system")
	out := []link{}
	for _, l := range v.fabric.Links() {
		if !seen[l.A] || !seen[l.B] || system != "" && !isSystem(l.A.Node, system) && !isSystem(l.B.Node, system) {
			continue
		}
		out = append(out, link{
			Name:       portName(l.A) + ":" + portName(l.B),
			SourceGUID: guidText(portGUID(l.A)), SourcePort: strconv.Itoa(int(l.A.Num)), SourceName: l.A.Node.Name(), SourceDName: dname(l.A),
			DestinationGUID: guidText(portGUID(l.B)), DestinationPort: strconv.Itoa(int(l.B.Num)), DestinationName: l.B.Node.Name(), DestinationDName: dname(l.B),
		})
	}
	return c.page(out)
}

// page is a list of links; with page_number, from 1, and rpp, the links of a page, an
// object with one page of it, as the SDK asks for them.
func (c *call) page(list []link) (any, error) {
	if !c.query.Has("page_number") {
		return list, nil
	}
	number, err1 := strconv.ParseUint(c.query.Get("page_number"), 10, 31)
	size, err2 := strconv.ParseUint(cmp.Or(c.query.Get("rpp"), strconv.Itoa(pageSize)), 10, 31)
	if err1 != nil || err2 != nil || number == 0 || size == 0 {
		return nil, wrong(http.StatusBadRequest, "page_number and rpp: want numbers from 1")
	}
	first := min((number-1)*size, uint64(len(list)))
	last := min(first+size, uint64(len(list)))
	return map[string]any{"data": list[first:last]}, nil
}

// vport is an alias GUID of a port as UFM shows it.
type vport struct {
	GUID       string `json:"virtual_port_guid"`
	State      string `json:"virtual_port_state"`
	LID        ib.LID `json:"virtual_port_lid"`
	SystemGUID string `json:"system_guid"`
	SystemName string `json:"system_name"`
	PortGUID   string `json:"port_guid"`
	PortName   string `json:"port_name"`
	Number     int    `json:"physical_port_number"`
}

// listVPorts answers GET resources/vports.
func (c *call) listVPorts() (any, error) {
	list, err := c.seen()
	if err != nil {
		return nil, err
	}
	system, name := c.query.Get("system"), c.query.Get("port")
	out := []vport{}
	for _, p := range list {
		if system != "" && !isSystem(p.Node, system) || name != "" && name != portName(p) {
			continue
		}
		for _, a := range p.Aliases() {
			out = append(out, vport{
				GUID: guidText(uint64(a.GUID)), State: logicalState(p), LID: p.Info.LID, SystemGUID: guidText(uint64(p.Node.GUID())),
				SystemName: systemName(p.Node), PortGUID: guidText(uint64(p.GUID)), PortName: portName(p), Number: int(p.Num),
			})
		}
	}
	return out, nil
}
