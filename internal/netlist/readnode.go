package netlist

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// portLine is a line of a record: port says it is cabled to remotePort of
// remote.
type portLine struct {
	place      Place // zero if the file has no line for the port
	port       ib.PortNum
	hasGUID    bool   // gives the port's GUID
	isAlias    bool   // only gives the port another name, remote
	remote     string // node id, or module@alias
	remotePort ib.PortNum
	remoteGUID ib.PortGUID // 0 for none
}

// isListed reports whether the file has a line for the port.
func (l *portLine) isListed() bool { return l.place.Line != 0 }

// aliasUse is the port that an alias names.
type aliasUse struct {
	record *record
	line   *portLine
}

// header reads the first line of a record from after its keyword:
// ports "id" # description attributes.
func (r *reader) header(t ib.NodeType, c *cursor) {
	rec, err := r.record(t, c)
	if err != nil {
		r.fault(c, err)
		// The port lines go to a node that is not part of the netlist.
		rec = &record{
			node:  &Node{Type: t, Ports: make([]Port, MaxPorts+1)},
			lines: make([]portLine, MaxPorts+1),
		}
	}
	r.open = rec
}

// record adds the node of a header.
func (r *reader) record(t ib.NodeType, c *cursor) (*record, error) {
	c.skipBlanks()
	ports, err := c.number("the number of ports", 0, 1, MaxPorts)
	if err != nil {
		return nil, err
	}
	c.skipBlanks()
	start := c.pos
	id, err := c.quoted("a node id")
	if err != nil {
		return nil, err
	}
	if id, err = r.qualify(id); err != nil {
		c.pos = start
		return nil, err
	}
	r.totalPorts += int(ports)
	if len(r.records) == MaxNodes || r.totalPorts > MaxTotalPorts {
		r.stopped = true
		return nil, fmt.Errorf("one node too many: want at most %d nodes and %d ports", MaxNodes, MaxTotalPorts)
	}
	rec := &record{
		place: r.at,
		node:  r.node(t, id, ib.PortNum(ports)),
		lines: make([]portLine, ports+1),
	}
	r.attributes(rec.node, c)
	r.records = append(r.records, rec)
	r.netlist.Nodes = append(r.netlist.Nodes, rec.node)
	if r.byID[rec.node.ID] == nil {
		r.byID[rec.node.ID] = rec
	}
	return rec, nil
}

// qualify puts the module's name before a node id.
func (r *reader) qualify(id string) (string, error) {
	if strings.ContainsAny(id, "#@") {
		return "", fmt.Errorf("node id %q: want no # or @ in it", id)
	}
	if r.module != "" {
		id = r.module + "#" + id
	}
	return id, checkID(id)
}

// node makes a node with what the settings say about it.
func (r *reader) node(t ib.NodeType, id string, ports ib.PortNum) *Node {
	n := NewNode(t, strings.Clone(id), r.guids.take(t, ports), ports)
	n.VendorID, n.DeviceID = r.vendorID, r.deviceID
	n.SystemImageGUID = cmp.Or(r.systemImage, n.SystemImageGUID)
	r.vendorID, r.systemImage = 0, 0
	if t == ib.NodeSwitch {
		n.Ports[0].GUID = cmp.Or(r.swPortGUID, n.Ports[0].GUID)
		r.swPortGUID = 0
	}
	if r.rates != DefaultRates {
		for p := range n.Ports {
			n.Ports[p].Enabled = r.rates
		}
	}
	return n
}

// attributes reads what follows the id in a record header.
func (r *reader) attributes(n *Node, c *cursor) {
	if i := strings.IndexByte(c.rest(), '#'); i >= 0 {
		c.pos += i + 1
		r.description(n, c)
	}
	if n.Type == ib.NodeSwitch {
		n.EnhancedPort0 = strings.Contains(c.rest(), "enhanced port 0")
		r.address(&n.Ports[0], *c)
	}
}

// description reads a quoted description, or one that ends where attributes
// begin.
func (r *reader) description(n *Node, c *cursor) {
	c.skipBlanks()
	start := c.pos
	var text string
	if rest := c.rest(); c.accept(`"`) && strings.Contains(c.rest(), `"`) {
		text, _, _ = strings.Cut(rest[1:], `"`)
		c.pos += len(text) + 1
	} else {
		if c.pos > start {
			r.warn(c, "description without a closing double quote")
		}
		text = c.rest()
		for _, key := range []string{" enhanced port ", " base port ", " lid ", " lmc "} {
			if i := strings.Index(text, key); i >= 0 {
				text = text[:i]
				break
			}
		}
		c.pos += len(text)
		text = strings.TrimRight(text, " \t")
	}
	if i := strings.IndexFunc(text, isControl); i >= 0 {
		r.faultAt(r.column(start), fmt.Errorf("control character 0x%02x in a description", text[i]))
		return
	}
	if len(text) > MaxDescription {
		r.warnAt(r.column(start), "description of %d octets: cut to %d", len(text), MaxDescription)
		text = text[:MaxDescription]
	}
	if text != "" {
		n.Description = strings.Clone(text)
	}
}

// address reads the LID and LMC that the rest of a line presets.
func (r *reader) address(p *Port, lid cursor) {
	lmc := lid
	if lid.seek("lid") {
		v, err := lid.number("a LID", 0, 0, uint64(ib.LIDUnicastMax))
		if err != nil {
			r.warn(&lid, "%v: no LID is preset", err)
		}
		p.LID = ib.LID(v)
	}
	if lmc.seek("lmc") {
		v, err := lmc.number("an LMC", 0, 0, uint64(ib.LMCMax))
		if err != nil {
			r.warn(&lmc, "%v: no LMC is preset", err)
		}
		p.LMC = ib.LMC(v)
	}
}

// portLine reads a line of a record:
// [port](GUID) "remote id"[remote port](GUID) options # comment.
func (r *reader) portLine(c *cursor) {
	if r.open == nil {
		r.fault(c, errors.New("port line outside a node record: want it below its Switch, Ca, Hca or Rt line, without a blank line between"))
		return
	}
	rec := r.open
	rec.count++
	line := portLine{place: r.at, isAlias: c.accept("@")}
	if err := r.ends(rec, &line, c); err != nil {
		r.fault(c, err)
		return
	}
	l := &rec.lines[line.port]
	if l.isListed() {
		r.faultAt(r.at, fmt.Errorf("port %d is listed twice, first at %v", l.port, l.place))
		return
	}
	*l = line
	if l.isAlias {
		r.alias(rec, l)
	}
	port := &rec.node.Ports[l.port]
	r.options(port, c)
	r.tail(rec.node, port, c)
}

// ends reads both ends of a port line.
func (r *reader) ends(rec *record, l *portLine, c *cursor) error {
	port, guid, err := endIn(c, rec.node.NumPorts())
	if err != nil {
		return err
	}
	l.port = port
	if l.hasGUID = guid != 0 && rec.node.Type != ib.NodeSwitch; l.hasGUID {
		rec.node.Ports[port].GUID = guid
	}
	if l.remote, err = c.quoted("a remote node id"); err != nil {
		return err
	}
	if l.isAlias {
		return nil
	}
	l.remote, l.remotePort = r.expand(l.remote), 1
	before := *c
	if c.skipBlanks() && c.peek() == '[' {
		r.warn(c, "blank before the remote port: ibsim takes port 1")
	}
	if c.peek() == '[' {
		l.remotePort, l.remoteGUID, err = endIn(c, MaxPorts)
		return err
	}
	*c = before
	return nil
}

// endIn reads [port](GUID), the port from 1 to limit, the GUID 0 if there is
// none. ibnetdiscover writes the number on a chassis as [ext N] between them.
func endIn(c *cursor, limit int) (ib.PortNum, ib.PortGUID, error) {
	if err := c.expect("["); err != nil {
		return 0, 0, err
	}
	port, err := c.number("a port number", 10, 1, uint64(limit))
	if err != nil {
		return 0, 0, err
	}
	if err := c.expect("]"); err != nil {
		return 0, 0, err
	}
	if c.accept("[ext ") {
		if _, err := c.number("an external port number", 10, 0, MaxPorts+1); err != nil {
			return 0, 0, err
		}
		if err := c.expect("]"); err != nil {
			return 0, 0, err
		}
	}
	c.skipBlanks()
	guid, err := portGUIDIn(c)
	return ib.PortNum(port), guid, err
}

// expand gives a remote id its module, unless it names one.
func (r *reader) expand(id string) string {
	switch {
	case strings.HasPrefix(id, "@"):
		return r.module + id
	case r.module != "" && !strings.ContainsAny(id, "#@"):
		return r.module + "#" + id
	}
	return id
}

// alias enters the name that an alias line gives to its port.
func (r *reader) alias(rec *record, l *portLine) {
	if strings.ContainsAny(l.remote, "#@") {
		r.faultAt(l.place, fmt.Errorf("alias %q: want no # or @ in it", l.remote))
		return
	}
	name := r.module + "@" + l.remote
	if len(name) > MaxAlias {
		r.faultAt(l.place, fmt.Errorf("alias %q: want at most %d octets with the module", name, MaxAlias))
		return
	}
	if first, ok := r.aliases[name]; ok {
		r.faultAt(l.place, fmt.Errorf("alias %q is given twice, first at %v", name, first.line.place))
		return
	}
	r.aliases[name] = aliasUse{rec, l}
}

// options reads w=, s= and e= before the comment of a port line.
func (r *reader) options(p *Port, c *cursor) {
	for {
		for c.skipBlanks() || c.accept(",") {
		}
		if c.peek() == 0 || c.peek() == '#' || strings.HasPrefix(c.rest(), "lid ") {
			return
		}
		start := *c
		key := c.word()
		if !c.accept("=") {
			r.warn(&start, "%v", start.want("an option, w=, s= or e=, or a comment"))
			c.pos = start.pos
			skipWord(c)
			continue
		}
		if err := option(p, key, c); err != nil {
			r.fault(c, err)
			skipWord(c)
		}
	}
}

func skipWord(c *cursor) {
	for c.peek() != 0 && c.peek() != ' ' && c.peek() != '\t' && c.peek() != '#' {
		c.pos++
	}
}

// option reads the value of one option.
func option(p *Port, key string, c *cursor) error {
	var v uint64
	var err error
	switch key {
	case "w":
		if v, err = c.number("a mask of link widths", 0, 1, widthMask); err == nil {
			p.Enabled.Width = uint8(v)
		}
	case "s":
		if v, err = c.number("a mask of link speeds", 0, 0, speedMask); err == nil {
			// ibsim means QDR by 0.
			p.Enabled.Speed = cmp.Or(uint8(v), SpeedQDR)
		}
	case "e":
		if v, err = c.number("a mask of extended link speeds", 0, 0, extSpeedMask); err == nil {
			p.Enabled.ExtSpeed = uint8(v)
		}
	default:
		err = fmt.Errorf("option %q is unknown: want w, s or e", key)
	}
	return err
}

// tail reads what ibnetdiscover writes at the end of a port line: a CA's own
// "lid N lmc N", the quoted description of the peer, and "lid N 4xQDR".
func (r *reader) tail(n *Node, p *Port, c *cursor) {
	comment, before, after := *c, *c, *c
	if open := strings.IndexByte(c.rest(), '"'); open >= 0 {
		before.text = c.text[:c.pos+open]
		after.pos = strings.LastIndexByte(c.text, '"') + 1
		comment.text = c.text[:after.pos]
	}
	r.warnOfOptions(comment)
	if n.Type != ib.NodeSwitch {
		r.address(p, before)
	}
	if !after.seek("lid") {
		return
	}
	for isDigit(after.peek()) {
		after.pos++
	}
	after.skipBlanks()
	rate, _, _ := strings.Cut(after.rest(), " ")
	if !strings.Contains(rate, "x") {
		return
	}
	enabled, err := p.Enabled.enable(rate)
	if err != nil {
		r.warn(&after, "%v: the port keeps the rates it had", err)
		return
	}
	p.Enabled = enabled
}

// warnOfOptions warns of what ibsim takes for an option inside a comment: an =
// after, perhaps with blanks between, a letter that is one.
func (r *reader) warnOfOptions(comment cursor) {
	text := comment.rest()
	for i := strings.IndexByte(text, '='); i >= 0; {
		letter := strings.TrimRightFunc(text[:i], func(c rune) bool { return !isLetter(byte(c)) })
		if strings.HasSuffix(letter, "w") || strings.HasSuffix(letter, "s") || strings.HasSuffix(letter, "e") {
			comment.pos += len(letter) - 1
			r.warn(&comment, "ibsim reads options in comments: this one is ignored")
			return
		}
		next := strings.IndexByte(text[i+1:], '=')
		if next < 0 {
			return
		}
		i += 1 + next
	}
}
